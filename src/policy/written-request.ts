import { classifyDescribed } from '../classify/verdict/classify.ts'
import {
  type DescribedRequest as Description,
  describeRequest,
} from '../classify/verdict/described-request.ts'
import type { Knowledge } from '../classify/known/knowledge.ts'
import { PROOF_METHODS } from '../classify/verdict/proof.ts'
import { conflictsIn } from '../classify/verdict/proof-evidence.ts'
import { type FingerprintType, isFingerprint } from '../classify/known/signature.ts'
import { CATEGORIES, PURPOSES, SOFTWARE_KINDS } from '../classify/known/software.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import type { Verdict } from '../classify/verdict/verdict.ts'
import { DocumentFault, type DocumentProblem, Place, shown } from '../shared/problem.ts'
import { isAuthority } from '../wire/host.ts'
import { isMiscasedMethod } from '../wire/methods.ts'
import type { HttpVersion } from '../wire/request-head.ts'
import type { Facts, McpFacts } from './facts.ts'
import { resolvedId } from './written-id.ts'

/** A request described by an admin to see what the proxy would do with it. */
export interface DescribedFacts {
  readonly facts: Facts
  readonly print: Description['print']
  /** Whether the description states the verdict. If not, the verdict is classified from the rest. */
  readonly isVerdictGiven: boolean
}

/** The same request before it is classified. */
export interface WrittenRequest {
  readonly facts: Omit<Facts, 'verdict'>
  readonly description: Description
  /** `null`: the description does not state a verdict. */
  readonly verdict: Verdict | null
}

/** Throws a DocumentFault with all problems and their places. */
export function readWrittenRequest(value: unknown): WrittenRequest {
  const problems: DocumentProblem[] = []
  const read = readRequest(Place.of(value ?? {}, problems))
  if (problems.length > 0) throw new DocumentFault('REQUEST_INVALID', problems)
  return read
}

/** What a described request is classified with. */
export interface Known {
  /** `null`: there are no signatures yet. */
  readonly names: SoftwareNames | null
  /** Called if the description does not state a verdict. */
  knowledge(): Knowledge
}

export function describedRequest(
  { facts, description, verdict }: WrittenRequest,
  { names, knowledge }: Known,
  nowMs: number,
): DescribedFacts {
  const { print } = description
  if (verdict !== null) {
    const known = withIds(verdict, names)
    return { facts: { ...facts, verdict: known }, print, isVerdictGiven: true }
  }
  const made = classifyDescribed(knowledge(), description, nowMs)
  return { facts: { ...facts, verdict: made.verdict }, print, isVerdictGiven: false }
}

/** Agents and software can be given by any of their names, as in a policy. */
function withIds(verdict: Verdict, names: SoftwareNames | null): Verdict {
  const { agent, software } = verdict
  return {
    ...verdict,
    agent: agent && { ...agent, id: resolvedId(agent.id, names) },
    software: software && { ...software, id: resolvedId(software.id, names) },
  }
}

function readRequest(place: Place): WrittenRequest {
  const members = place.members(MEMBERS)
  const fingerprintOf = (type: FingerprintType) => readFingerprint(members.get(type), type)
  const textOf = (name: string) => members.get(name)?.text('text', TEXT_LENGTH_MAX) ?? null
  const rawHeaders = readHeaders(members.get('headers'))
  const host = textOf('host') ?? headerOf(rawHeaders ?? [], 'host')
  if (host !== null && !isAuthority(host)) {
    const at = members.get('host') ?? members.get('headers')!
    at.refuse(`${shown(host)} is not a valid host; the proxy refuses it (400)`)
  }
  const path = textOf('path') ?? '/'
  if (!path.startsWith('/')) members.get('path')!.refuse(`is ${shown(path)}; a path must start with /`)
  const method = textOf('method')
  if (method !== null) checkMethod(method, members.get('method')!)
  const verdict = members.get('verdict')
  const noHello = members.get('hello')?.choice(['malformed', 'not-tls'] as const) ?? null
  const [ja4, http2] = [fingerprintOf('ja4'), fingerprintOf('http2')]
  const description = describeRequest(
    {
      method,
      target: path,
      version: readVersion(members.get('http'), ja4, http2),
      rawHeaders,
      userAgent: null,
      address: textOf('address'),
      ja4,
      http2,
      stable: fingerprintOf('stable'),
      ja4h: fingerprintOf('ja4h'),
      ja4s: null,
      ja4x: null,
      noHello,
      isTls: noHello !== 'not-tls',
    },
    false,
  )
  const { print, head, address, forged } = description
  const campaign = textOf('campaign')
  const { rawHeaders: sent } = head
  const mcp = readMcp(members.get('mcp'))
  const facts = { method: head.method, host, path, address, rawHeaders: sent, print, forged, campaign, mcp }
  return { facts, description, verdict: verdict === undefined ? null : readVerdict(verdict) }
}

/** The call in the body of a request to an MCP server. */
function readMcp(place: Place | undefined): McpFacts | null {
  if (place === undefined) return null
  const members = place.members(MCP_MEMBERS)
  const of = (name: string, what: string) => {
    const text = members.get(name)?.text(what, TEXT_LENGTH_MAX) ?? null
    return text === null ? null : asBytes(text)
  }
  const [tool, resource] = [of('tool', 'the name of a tool'), of('resource', 'the URI of a resource')]
  const usual = tool !== null ? 'tools/call' : resource !== null ? 'resources/read' : null
  const method = of('method', 'an MCP method, like tools/call') ?? usual
  return method === null ? place.refuse('needs `method`, `tool` or `resource`') : { method, tool, resource }
}

/** Checks the method as the proxy does: it forwards neither kind. */
function checkMethod(method: string, place: Place): void {
  if (!TOKEN.test(method)) place.refuse(`${shown(method)} is not a valid method`)
  else if (isMiscasedMethod(method))
    place.refuse(`is ${shown(method)}; the proxy refuses it (400): write ${method.toUpperCase()}`)
}

function readFingerprint(place: Place | undefined, type: FingerprintType): string | null {
  const text = place?.text('a fingerprint', TEXT_LENGTH_MAX) ?? null
  if (text === null || (isFingerprint(type, text) && !text.includes('*'))) return text
  return place!.refuse(`${shown(text)} is not a valid ${type}`)
}

/** Without `http`, the best version that the connection offers. */
function readVersion(place: Place | undefined, ja4: string | null, http2: string | null): HttpVersion {
  if (place === undefined) return http2 !== null || ja4?.slice(8, 10) === 'h2' ? '20' : '11'
  // In YAML, 1.1 and 2 are numbers.
  const found = VERSIONS.get(String(place.value))
  return found ?? place.refuse(`is ${shown(place.value)}; expected 1.1 or 2`) ?? '11'
}

/**
 * A mapping of names to one or several values, or a list of pairs, which keeps the order and case as sent.
 */
function readHeaders(place: Place | undefined): string[] | null {
  if (place === undefined) return null
  const headers: string[] = []
  const add = (name: string, value: Place) => {
    if (!TOKEN.test(name)) value.refuse(`${shown(name)} is not a valid header name`)
    const text = typeof value.value === 'string' ? value.value : value.refuse('must be text, as it was sent')
    if (text !== null && LINE_END.test(text)) value.refuse('a header value must be a single line')
    headers.push(name, asBytes(text ?? ''))
  }
  if (place.isMapping) {
    for (const [name, member] of place.entries()) for (const value of member.items()) add(name, value)
    return headers
  }
  if (!Array.isArray(place.value)) {
    place.refuse(`is ${shown(place.value)}; expected a mapping, or a list of [name, value]`)
    return headers
  }
  for (const item of place.value.length === 0 ? [] : place.items()) {
    const [name, value, ...more] = item.items()
    if (value === undefined || more.length > 0) item.refuse('must be a name and a value')
    else add(name!.text('a header name') ?? 'x', value)
  }
  return headers
}

function readVerdict(place: Place): Verdict {
  const members = place.members(VERDICT_MEMBERS)
  const kind = members.get('kind')?.choice(['agent', 'automation', 'human', 'unknown'] as const)
  if (kind === undefined) place.refuse('needs `kind`')
  const evidence = (members.get('evidence')?.items() ?? []).map((item) => {
    const kind = item.isMapping ? item.entries().get('kind') : item
    return { kind: kind?.text('a kind of evidence') ?? '', detail: '', weight: 1 }
  })
  return {
    kind: kind ?? 'unknown',
    agent: readAgent(members.get('agent')),
    software: readNamed(members.get('software'), 'kind', SOFTWARE_KINDS, 'tool'),
    confidence: readProbability(members.get('confidence')),
    nameConfidence: readProbability(members.get('name_confidence')),
    proof: readProof(members.get('verified'), members.get('signer')),
    conflicts: conflictsIn(evidence),
    evidence,
  }
}

function readProbability(place: Place | undefined): number {
  const number = typeof place?.value === 'number' ? place.value : 1
  if (place !== undefined && (place.value !== number || number < 0 || number > 1))
    place.refuse(`is ${shown(place.value)}; expected a number from 0 to 1`)
  return number
}

/** Web Bot Auth requires a signer. */
function readProof(verified: Place | undefined, signer: Place | undefined): Verdict['proof'] {
  const method = verified?.choice(PROOF_METHODS) ?? null
  if (method !== 'web-bot-auth') signer?.refuse('is allowed only with `verified: web-bot-auth`')
  if (method === null) return null
  if (method === 'web-bot-auth' && signer === undefined)
    verified!.refuse('needs `signer`, the URL of the signer')
  return { method, agent: signer?.text('the URL of the signer') ?? '', key: null }
}

function readAgent(place: Place | undefined): Verdict['agent'] {
  const named = readNamed(place, 'category', CATEGORIES, 'custom')
  if (named === null) return null
  const purpose = place!.isMapping ? place!.entries().get('purpose') : undefined
  return { ...named, purposes: (purpose?.items() ?? []).flatMap((item) => item.choice(PURPOSES) ?? []) }
}

/** Reads an id alone, or a mapping. */
function readNamed<Name extends 'category' | 'kind', Choice extends string>(
  place: Place | undefined,
  third: Name,
  choices: readonly Choice[],
  fallback: Choice,
): ({ id: string; name: string } & Record<Name, Choice>) | null {
  if (place === undefined || place.value === null) return null
  const known = third === 'category' ? ['id', 'name', third, 'purpose'] : ['id', 'name', third]
  const members = place.isMapping ? place.members(known) : new Map([['id', place]])
  const id = members.get('id')?.text('an id') ?? null
  if (id === null) return members.has('id') ? null : place.refuse('needs `id`')
  const name = members.get('name')?.text('a name') ?? id
  const value = members.get(third)?.choice(choices) ?? fallback
  return { id, name, [third]: value } as { id: string; name: string } & Record<Name, Choice>
}

function headerOf(rawHeaders: readonly string[], name: string): string | null {
  const at = rawHeaders.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name)
  return at === -1 ? null : rawHeaders[at + 1]!
}

/** Encodes text as UTF-8, one character per byte, as it arrives from a socket. */
function asBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const VERDICT_MEMBERS = [
  'kind',
  'agent',
  'software',
  'confidence',
  'name_confidence',
  'verified',
  'signer',
  'evidence',
]
const MEMBERS = [
  'method',
  'host',
  'path',
  'http',
  'address',
  'headers',
  'ja4',
  'ja4h',
  'stable',
  'http2',
  'hello',
  'verdict',
  'campaign',
  'mcp',
]
const MCP_MEMBERS = ['method', 'tool', 'resource']
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map([
  ['1.1', '11'],
  ['2', '20'],
])
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
const LINE_END = /[\r\n\0]/
const TEXT_LENGTH_MAX = 65_536
