import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { MadeCertificate } from '../proxy/tls/certificate-maker.ts'

/** A self-made certificate and its CA, shared by all replicas. */
export interface OwnCertificate {
  readonly ca: MadeCertificate
  readonly leaf: MadeCertificate
  /** The next CA, announced so that it is trusted by the time it signs. */
  readonly nextCa: MadeCertificate | null
  /** The previous CA, trusted until no replica uses a certificate that it signed. */
  readonly previousCa: string | null
}

/**
 * The next renewal step: everything, announce a next CA, switch to it, renew the leaf, or drop the previous
 * CA.
 */
type Step = 'all' | 'announce' | 'promote' | 'leaf' | 'forget'

/** `null`: nothing is due. One step at a time: if replicas act at once, the first stored result wins. */
export function stepDue(own: OwnCertificate | null, name: string, nowMs: number): Step | null {
  if (own === null || !isWhole(own, name) || msLeft(own.ca.certificate, nowMs) <= 0) return 'all'
  const { ca, leaf, nextCa, previousCa } = own
  if (nextCa !== null && ageMs(nextCa.certificate, nowMs) >= ANNOUNCED_MS) return 'promote'
  if (nextCa === null && msLeft(ca.certificate, nowMs) < CA_RENEWAL_DAYS * DAY_MS) return 'announce'
  if (msLeft(leaf.certificate, nowMs) < LEAF_RENEWAL_DAYS * DAY_MS) return 'leaf'
  if (previousCa !== null && ageMs(leaf.certificate, nowMs) >= OVERLAP_MS) return 'forget'
  return null
}

/** The state after that step. `name`: the host name that the API server requests. */
export async function take(
  step: Step,
  own: OwnCertificate | null,
  name: string,
  nowMs: number,
): Promise<OwnCertificate> {
  switch (step) {
    case 'all':
      return fromCa(await newCa(name, nowMs), own, name, nowMs)
    case 'announce':
      return { ...own!, nextCa: await newCa(name, nowMs) }
    case 'promote':
      return fromCa(own!.nextCa!, own, name, nowMs)
    case 'leaf':
      return { ...own!, leaf: await newLeaf(own!.ca, name, nowMs) }
    case 'forget':
      return { ...own!, previousCa: null }
  }
}

/** All CAs that may have signed a replica's certificate, as PEM: the API server must trust them. */
export function bundleOf({ ca, nextCa, previousCa }: OwnCertificate): string {
  return [ca.certificate, nextCa?.certificate ?? '', previousCa ?? ''].join('')
}

export function notAfterMs(certificate: string): number {
  return new X509Certificate(certificate).validToDate.getTime()
}

/** Certificate and key of each, and the previous CA's certificate, in the order of `FIELDS`. */
export function fieldsOf({ ca, leaf, nextCa, previousCa }: OwnCertificate): Record<string, string> {
  return {
    'ca.crt': ca.certificate,
    'ca.key': ca.key,
    'tls.crt': leaf.certificate,
    'tls.key': leaf.key,
    ...(nextCa === null ? {} : { 'next-ca.crt': nextCa.certificate, 'next-ca.key': nextCa.key }),
    ...(previousCa === null ? {} : { 'previous-ca.crt': previousCa }),
  }
}

/** `null`: not in the form of `fieldsOf`. */
export function ownCertificateIn(fields: ReadonlyMap<string, string>): OwnCertificate | null {
  try {
    const pair = (name: string): MadeCertificate | null => {
      const [certificate, key] = [fields.get(`${name}.crt`), fields.get(`${name}.key`)]
      if (certificate === undefined || key === undefined) return null
      return isPair(certificate, key) ? { certificate, key } : null
    }
    const [ca, leaf, nextCa] = [pair('ca'), pair('tls'), pair('next-ca')]
    const previousCa = fields.get('previous-ca.crt') ?? null
    if (previousCa !== null) new X509Certificate(previousCa)
    return ca === null || leaf === null ? null : { ca, leaf, nextCa, previousCa }
  } catch {
    return null
  }
}

function isPair(certificate: string, key: string): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
}

/** Whether an API server that trusts the CA accepts the leaf for this name. */
function isWhole({ ca, leaf }: OwnCertificate, name: string): boolean {
  const [issuer, issued] = [new X509Certificate(ca.certificate), new X509Certificate(leaf.certificate)]
  return issued.verify(issuer.publicKey) && issued.checkHost(name, { subject: 'never' }) !== undefined
}

async function fromCa(
  ca: MadeCertificate,
  before: OwnCertificate | null,
  name: string,
  nowMs: number,
): Promise<OwnCertificate> {
  const leaf = await newLeaf(ca, name, nowMs)
  return { ca, leaf, nextCa: null, previousCa: before?.ca.certificate ?? null }
}

async function newCa(name: string, nowMs: number): Promise<MadeCertificate> {
  const { makeCa } = await import('../proxy/tls/certificate-maker.ts')
  // Each CA has a unique name: with equal names, a verifier might try the wrong CA.
  const commonName = `Gatehouse inject CA ${new Date(nowMs).toISOString()}`
  return makeCa(commonName, [name], nowMs, CA_DAYS)
}

async function newLeaf(ca: MadeCertificate, name: string, nowMs: number): Promise<MadeCertificate> {
  const { makeLeaf } = await import('../proxy/tls/certificate-maker.ts')
  return makeLeaf(ca, [name], [], nowMs, LEAF_DAYS)
}

function msLeft(certificate: string, nowMs: number): number {
  return notAfterMs(certificate) - nowMs
}

/** Certificates are backdated by an hour. */
function ageMs(certificate: string, nowMs: number): number {
  return nowMs - new X509Certificate(certificate).validFromDate.getTime() - CLOCK_SKEW_MS
}

const DAY_MS = 86_400_000
const CLOCK_SKEW_MS = 3_600_000
const CA_DAYS = 365
/** Long enough that a leaf expires before its CA. */
const CA_RENEWAL_DAYS = 120
const LEAF_DAYS = 90
const LEAF_RENEWAL_DAYS = 30
/** By then every API server knows an announced CA. */
const ANNOUNCED_MS = 3_600_000
/** By then every replica has read the Secret. */
const OVERLAP_MS = 86_400_000
