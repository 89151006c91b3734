import { DEFAULT_APP, isSlug } from '../apps/app.ts'
import { PROOF_METHODS, type Proof } from '../classify/verdict/proof.ts'
import type { Sighting } from './sighting.ts'

/** Parses a Sighting from an untrusted line of JSON; otherwise returns what is wrong with it. */
export function parseSighting(line: string): Sighting | string {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return 'is not valid JSON'
  }
  return readSighting(value)
}

/** Reads a Sighting from an untrusted value; otherwise returns what is wrong with it. */
export function readSighting(value: unknown): Sighting | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is not an object'
  const members = value as Record<string, unknown>
  for (const [name, takes] of MEMBERS) {
    const member = Object.hasOwn(members, name) ? members[name] : LATER[name]
    if (!takes(member)) return member === undefined ? `has no ${name}` : `${name} is not what it should be`
  }
  // Drop members of later versions. Members that an earlier version did not send get their default.
  return Object.fromEntries(
    MEMBERS.map(([name]) => [name, members[name] ?? LATER[name] ?? null]),
  ) as unknown as Sighting
}

/** How the client has proven its identity, as far as it is stored. */
export function proofIn({ verified, signer, software, key }: Sighting): Proof | null {
  const method = PROOF_METHODS.find((each) => each === verified)
  return method === undefined ? null : { method, agent: signer ?? software ?? '', key }
}

type Takes = (value: unknown) => boolean

function text(value: unknown): boolean {
  return typeof value === 'string'
}

function textOrNull(value: unknown): boolean {
  return value === null || text(value)
}

function number(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function hash(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff
}

function texts(value: unknown): boolean {
  return Array.isArray(value) && value.every(text)
}

function oneOf(...choices: readonly (string | null)[]): Takes {
  return (value) => choices.includes(value as string | null)
}

/** Defaults of members that were added later. */
const LATER: Readonly<Partial<Record<keyof Sighting, unknown>>> = {
  app: DEFAULT_APP,
  purposes: [],
  nameConfidence: 0,
  limited: false,
  signer: null,
  key: null,
  signatureFault: null,
  allegedSigner: null,
  requestKind: 0,
  program: 0,
  headerOrder: 0,
  target: 0,
  campaign: null,
}
const MEMBERS: readonly (readonly [name: keyof Sighting, takes: Takes])[] = [
  ['id', text],
  ['seenAtMs', number],
  ['proxy', text],
  ['address', text],
  ['method', text],
  ['host', textOrNull],
  ['app', isSlug],
  ['path', text],
  ['userAgent', textOrNull],
  ['ja4', textOrNull],
  ['ja4Source', oneOf('own', 'hop', null)],
  ['noHello', oneOf('not-tls', 'malformed', null)],
  ['stable', textOrNull],
  ['ja4s', textOrNull],
  ['ja4h', textOrNull],
  ['ja4x', textOrNull],
  ['http2', textOrNull],
  ['verdict', oneOf('agent', 'automation', 'human', 'unknown')],
  ['agent', textOrNull],
  ['category', textOrNull],
  ['purposes', texts],
  ['software', textOrNull],
  ['confidence', number],
  ['nameConfidence', number],
  ['verified', textOrNull],
  ['signer', textOrNull],
  ['key', textOrNull],
  ['signatureFault', textOrNull],
  ['allegedSigner', textOrNull],
  ['evidence', texts],
  ['rule', text],
  ['action', text],
  ['dryRun', (value) => typeof value === 'boolean'],
  ['done', text],
  ['limited', (value) => typeof value === 'boolean'],
  ['forged', texts],
  ['snapshot', number],
  ['requestKind', hash],
  ['program', hash],
  ['headerOrder', hash],
  ['target', hash],
  ['campaign', textOrNull],
]
