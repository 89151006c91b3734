import { DEFAULT_APP, isSlug } from '../apps/app.ts'
import { PROOF_METHODS, type Proof } from '../classify/verdict/proof.ts'
import { POLICY_LAYERS } from '../policy/action.ts'
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
    const member = Object.hasOwn(members, name) ? members[name] : (LATER as Partial<Sighting>)[name]
    if (!takes(member)) return member === undefined ? `has no ${name}` : `${name} is not what it should be`
  }
  const read = value as Sent
  // Drop members of later versions. Members that an earlier version did not send get their default. A literal is made
  // and read in a fraction of the time of other objects with so many members.
  return {
    id: read.id,
    seenAtMs: read.seenAtMs,
    proxy: read.proxy,
    address: read.address,
    method: read.method,
    host: read.host,
    app: read.app ?? LATER.app,
    path: read.path,
    userAgent: read.userAgent,
    ja4: read.ja4,
    ja4Source: read.ja4Source,
    noHello: read.noHello,
    stable: read.stable,
    ja4s: read.ja4s,
    ja4h: read.ja4h,
    ja4x: read.ja4x,
    http2: read.http2,
    verdict: read.verdict,
    agent: read.agent,
    category: read.category,
    purposes: read.purposes ?? LATER.purposes,
    software: read.software,
    confidence: read.confidence,
    nameConfidence: read.nameConfidence ?? LATER.nameConfidence,
    verified: read.verified,
    signer: read.signer ?? LATER.signer,
    key: read.key ?? LATER.key,
    signatureFault: read.signatureFault ?? LATER.signatureFault,
    allegedSigner: read.allegedSigner ?? LATER.allegedSigner,
    evidence: read.evidence,
    rule: read.rule,
    layer: read.layer ?? LATER.layer,
    action: read.action,
    dryRun: read.dryRun,
    done: read.done,
    limited: read.limited ?? LATER.limited,
    forged: read.forged,
    snapshot: read.snapshot,
    requestKind: read.requestKind ?? LATER.requestKind,
    program: read.program ?? LATER.program,
    headerOrder: read.headerOrder ?? LATER.headerOrder,
    target: read.target ?? LATER.target,
    campaign: read.campaign ?? LATER.campaign,
    visitor: read.visitor ?? LATER.visitor,
    sampled: read.sampled ?? LATER.sampled,
    mcpMethod: read.mcpMethod ?? LATER.mcpMethod,
    mcpTool: read.mcpTool ?? LATER.mcpTool,
  }
}

/** How the client has proven its identity, as far as it is stored. */
export function proofIn({ verified, signer, software, key }: Sighting): Proof | null {
  const method = PROOF_METHODS.find((each) => each === verified)
  return method === undefined ? null : { method, agent: signer ?? software ?? '', key }
}

type Sent = Omit<Sighting, keyof typeof LATER> & Partial<Sighting>
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

function shareOrNull(value: unknown): boolean {
  return value === null || (number(value) && value !== 0 && (value as number) <= 1)
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
const LATER = {
  app: DEFAULT_APP,
  purposes: [],
  layer: null,
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
  visitor: null,
  sampled: null,
  mcpMethod: null,
  mcpTool: null,
} as const satisfies Partial<Sighting>
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
  ['layer', oneOf(...POLICY_LAYERS, null)],
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
  ['visitor', (value) => value === null || hash(value)],
  ['sampled', shareOrNull],
  ['mcpMethod', textOrNull],
  ['mcpTool', textOrNull],
]
