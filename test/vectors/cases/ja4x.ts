import type { CertificatePlan } from '../certificate-builder.ts'
import type { Bug, Rule } from '../rules.ts'

export interface Ja4xCase {
  readonly name: string
  readonly rule: Rule
  readonly bug?: Bug
  readonly certificate: CertificatePlan
  /** Written by hand from the rule's words. */
  readonly r: string
}

/** 128 octets, which is where a length no longer fits into one. */
const LONG_OID = `2b${'ff'.repeat(126)}7f`

export const JA4X_CASES: readonly Ja4xCase[] = [
  {
    name: 'parts: in DER order',
    rule: 'ja4x.parts',
    certificate: {
      issuer: [['550406'], ['55040a'], ['550403']],
      subject: [['550403'], ['550406']],
      extensions: ['551d0f', '551d13', '551d0e'],
    },
    r: '550406,55040a,550403_550403,550406_551d0f,551d13,551d0e',
  },
  {
    name: 'parts: duplicates',
    rule: 'ja4x.parts',
    certificate: {
      issuer: [['55040b'], ['55040b']],
      subject: [['55040b']],
      extensions: ['551d11', '551d11'],
    },
    r: '55040b,55040b_55040b_551d11,551d11',
  },
  {
    name: 'parts: one extension',
    rule: 'ja4x.parts',
    bug: 'ja4x-one-extension',
    certificate: { issuer: [['550403']], subject: [['550403']], extensions: ['551d13'] },
    r: '550403_550403_551d13',
  },
  {
    name: 'parts: unique ids before the extensions',
    rule: 'ja4x.parts',
    certificate: { issuer: [['550403']], subject: [['550403']], extensions: ['551d13'], uniqueIds: true },
    r: '550403_550403_551d13',
  },
  {
    name: 'parts: more than 127 bytes of them',
    rule: 'ja4x.parts',
    certificate: {
      issuer: new Array(20).fill(['550403']),
      subject: [['550403']],
      extensions: new Array(40).fill('551d13'),
    },
    r: `${new Array(20).fill('550403').join(',')}_550403_${new Array(40).fill('551d13').join(',')}`,
  },
  {
    name: 'empty: names',
    rule: 'ja4x.empty',
    bug: 'empty-hash',
    certificate: { extensions: ['551d11'] },
    r: '__551d11',
  },
  {
    name: 'empty: everything',
    rule: 'ja4x.empty',
    bug: 'empty-hash',
    certificate: {},
    r: '__',
  },
  {
    name: 'empty: a list of extensions',
    rule: 'ja4x.empty',
    certificate: { issuer: [['550403']], subject: [['550403']], extensions: [] },
    r: '550403_550403_',
  },
  {
    name: 'empty: version 1 has no extensions',
    rule: 'ja4x.empty',
    certificate: { version: 1, issuer: [['550403']], subject: [['550403']] },
    r: '550403_550403_',
  },
  {
    name: 'octets: 2.999 and other large arcs',
    rule: 'ja4x.octets',
    certificate: {
      issuer: [['883703'], ['0992268993f22c640119']],
      subject: [['2a864886f70d010901']],
      extensions: ['2b06010401d679020402', '8837'],
    },
    r: '883703,0992268993f22c640119_2a864886f70d010901_2b06010401d679020402,8837',
  },
  {
    name: 'octets: an OID of 128 octets',
    rule: 'ja4x.octets',
    certificate: { issuer: [[LONG_OID]], subject: [['550403']], extensions: null },
    r: `${LONG_OID}_550403_`,
  },
  {
    name: 'octets: an OID no encoder would write',
    rule: 'ja4x.octets',
    certificate: { issuer: [['8055']], subject: [['550403']], extensions: ['5580'] },
    r: '8055_550403_5580',
  },
  {
    name: 'set: a multi-valued RDN',
    rule: 'ja4x.set',
    certificate: {
      issuer: [['550406'], ['550403', '55040b', '0992268993f22c640101'], ['55040a']],
      subject: [['550403', '550405']],
      extensions: ['551d13'],
    },
    r: '550406,550403,55040b,0992268993f22c640101,55040a_550403,550405_551d13',
  },
]
