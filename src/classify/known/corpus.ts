import { helloTraits } from '../../fingerprint/hello-traits.ts'
import {
  type Http2Priority,
  type Http2Setting,
  http2Fingerprint,
  pageWeight,
} from '../../fingerprint/http2.ts'
import { type Ja4, ja4, unresumedJa4 } from '../../fingerprint/ja4.ts'
import { type Ja4h, ja4h } from '../../fingerprint/ja4plus/ja4h.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'
import { FingerprintText } from '../../fingerprint/text.ts'
import { stableKey } from '../../fingerprint/stable-key.ts'
import { DocumentFault, type DocumentProblem, Place, shown } from '../../shared/problem.ts'
import { isFingerprint } from './signature.ts'
import { type ClientHello, HELLO_BYTES_MAX, parseClientHello } from '../../wire/client-hello.ts'
import { HelloReader } from '../../wire/record.ts'
import type { HttpVersion, RequestHead } from '../../wire/request-head.ts'

/** One recorded connection of a known client. */
export interface CorpusRow {
  readonly id: string
  readonly client: string
  readonly version: string | null
  /** The kind of client. Any text; see `KNOWN_LABELS`. */
  readonly label: string
  readonly runtime: string | null
  readonly situation: string | null
  /** When the connection was accepted, in RFC 3339. */
  readonly ts: string | null
  /** Computed from the recording by the code that computes it in traffic. */
  readonly print: ConnectionPrint
  /** Often empty: clients open connections that they do not use. */
  readonly requests: readonly CorpusRequest[]
}

export interface CorpusRequest {
  readonly head: RequestHead
  /** `null` if JA4+ is turned off. */
  readonly ja4h: Ja4h | null
  readonly bodyBytes: number
  readonly situation: string | null
  /** Since the connection was accepted. */
  readonly atMs: number | null
}

/**
 * Parses one line of a corpus, a JSON object. Throws a DocumentFault with all problems. Ignores members with
 * unknown names, because others may have added their own. `ja4plus`: whether JA4H is computed.
 */
export function parseCorpusRow(value: unknown, ja4plus = true): CorpusRow {
  const problems: DocumentProblem[] = []
  const row = readRow(Place.of(value, problems), ja4plus)
  if (row === null || problems.length > 0) throw new DocumentFault('CORPUS_ROW_INVALID', problems)
  return row
}

function readRow(place: Place, ja4plus: boolean): CorpusRow | null {
  const members = place.entries()
  if (!place.isMapping) return null
  const id = required(place, members, 'id')
  const client = required(place, members, 'client')
  const label = required(place, members, 'label')
  const version = optional(members.get('version'))
  const runtime = optional(members.get('runtime'))
  const situation = optional(members.get('situation'))
  const ts = optional(members.get('ts'))
  const requests = list(members.get('requests'), REQUESTS_MAX, (item) => readRequest(item, ja4plus))
  const print = readPrint(members, requests?.[0]?.head ?? null)
  if (id === null || client === null || label === null || requests === null || print === null) return null
  return { id, client, version, label, runtime, situation, ts, print, requests }
}

type Members = ReadonlyMap<string, Place>

function readPrint(members: Members, first: RequestHead | null): ConnectionPrint | null {
  const hello = members.get('client_hello_hex')
  const given = members.get('ja4')
  const opening = members.get('h2')
  const known = hasValue(hello) ? readHello(hello) : hasValue(given) ? readJa4(given) : NOT_TLS
  const http2 = hasValue(opening) ? readHttp2(opening, first) : undefined
  if (known === null || http2 === null) return null
  return { ...known, ...NO_OPENING, ...http2 }
}

type HelloPrint = Pick<ConnectionPrint, 'ja4' | 'unresumed' | 'stable' | 'traits' | 'noHello' | 'ja4Source'>

/** TLS records as sent, up to the end of the hello or beyond. */
function readHello(place: Place): HelloPrint | null {
  const hex = place.text('TLS records in hex', HELLO_HEX_MAX)
  if (hex === null) return null
  if (hex.length % 2 === 1 || !HEX.test(hex)) return place.refuse(`${shown(hex)} is not valid hexadecimal`)
  const hello = helloIn(bytesOf(hex))
  if (hello === null) return MALFORMED
  const text = new FingerprintText()
  return {
    ja4: ja4(hello, 'tcp', text),
    unresumed: unresumedJa4(hello, 'tcp', text),
    stable: stableKey(hello, 'tcp', text),
    traits: helloTraits(hello),
    noHello: null,
    ja4Source: 'own',
  }
}

function helloIn(records: Uint8Array): ClientHello | null {
  const read = new HelloReader().push(records)
  if (read.kind !== 'message') return null
  const parsed = parseClientHello(read.message)
  return parsed.kind === 'client-hello' ? parsed.hello : null
}

function bytesOf(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16)
  return bytes
}

/** Replaces a hello: a JA4 that was computed elsewhere. */
function readJa4(place: Place): HelloPrint | null {
  const text = place.text('a JA4')
  if (text === null) return null
  if (text.includes('*') || !isFingerprint('ja4', text))
    return place.refuse(`${shown(text)} is not a valid JA4`)
  return { ...NOT_TLS, ja4: text as Ja4, noHello: null, ja4Source: 'own' }
}

type Opening = Pick<ConnectionPrint, 'http2' | 'pageWeight'>

/** As in traffic, there is no HTTP/2 fingerprint before the first request. */
function readHttp2(place: Place, first: RequestHead | null): Opening | null {
  const members = place.entries()
  if (!place.isMapping) return null
  const settings = list(members.get('settings'), ENTRIES_MAX, readSetting)
  const priorities = list(members.get('priority'), ENTRIES_MAX, readPriority)
  const frames = list(members.get('frames'), FRAMES_MAX, readFrameType)
  const increment = members.get('window_update')
  const windowUpdate = hasValue(increment) ? increment.integer(0, U31_MAX) : null
  if (settings === null || priorities === null || frames === null) return null
  if (hasValue(increment) && windowUpdate === null) return null
  const weight = members.get('weight')
  const headersWeight = hasValue(weight) ? weight.integer(0, WEIGHT_MAX) : null
  if (hasValue(weight) && headersWeight === null) return null
  if (first === null || first.version !== '20') return { http2: null, pageWeight: null }
  const early = members.has('frames') ? prioritiesBeforeHeaders(frames) : priorities.length
  const said = { settings, windowUpdate, priorities: priorities.slice(0, early), headersWeight }
  return { http2: http2Fingerprint(said, first.rawHeaders), pageWeight: pageWeight(said, first.rawHeaders) }
}

function readSetting(place: Place): Http2Setting | null {
  const parts = tuple(place, '[id, value]')
  const id = parts?.[0]?.integer(0, U16_MAX) ?? null
  const value = parts?.[1]?.integer(0, U32_MAX) ?? null
  return id === null || value === null ? null : { id, value }
}

function readPriority(place: Place): Http2Priority | null {
  const members = place.entries()
  if (!place.isMapping) return null
  const integer = (name: string, min: number, max: number) => {
    const member = members.get(name)
    return member === undefined ? place.refuse(`needs \`${name}\``) : member.integer(min, max)
  }
  const stream = integer('stream', 0, U31_MAX)
  const exclusive = integer('exclusive', 0, 1)
  const dependsOn = integer('dep', 0, U31_MAX)
  const weight = integer('weight', 1, 256)
  if (stream === null || exclusive === null || dependsOn === null || weight === null) return null
  return { stream, isExclusive: exclusive === 1, dependsOn, weight }
}

/** `[type, flags, stream, length]`. */
function readFrameType(place: Place): number | null {
  return tuple(place, '[type, flags, stream, length]')?.[0]?.integer(0, U8_MAX) ?? null
}

function prioritiesBeforeHeaders(frameTypes: readonly number[]): number {
  const headers = frameTypes.indexOf(FRAME_HEADERS)
  const before = headers === -1 ? frameTypes : frameTypes.slice(0, headers)
  return before.filter((type) => type === FRAME_PRIORITY).length
}

function readRequest(place: Place, ja4plus: boolean): CorpusRequest | null {
  const members = place.entries()
  if (!place.isMapping) return null
  const http = members.has('http')
    ? members.get('http')!.choice(HTTP_VERSIONS)
    : place.refuse('needs `http`, the HTTP version')
  const method = required(place, members, 'method')
  const target = required(place, members, 'path', TARGET_LENGTH_MAX)
  const headers = list(members.get('headers'), HEADERS_MAX, readHeader)
  const bodyBytes = number(members.get('body_bytes'))
  const situation = optional(members.get('situation'))
  const atMs = number(members.get('t'))
  if (http === null || method === null || target === null || headers === null) return null
  const head: RequestHead = { method, target, version: VERSIONS[http], rawHeaders: headers.flat() }
  return { head, ja4h: ja4plus ? ja4h(head) : null, bodyBytes: bodyBytes ?? 0, situation, atMs }
}

function readHeader(place: Place): readonly [name: string, value: string] | null {
  const parts = tuple(place, '[name, value]')
  if (parts === null) return null
  const [name, value] = [parts[0]!.value, parts[1]!.value]
  if (typeof name !== 'string' || typeof value !== 'string' || name === '')
    return place.refuse('must be a list of a name and a value')
  if (name.length + value.length > HEADER_LENGTH_MAX)
    return place.refuse(`is longer than ${HEADER_LENGTH_MAX} characters`)
  if (!BYTES.test(name) || !BYTES.test(value))
    return place.refuse('contains a character outside Latin-1; write each byte of a header as one character')
  return [name, value]
}

function required(place: Place, members: Members, name: string, lengthMax?: number): string | null {
  const member = members.get(name)
  return member === undefined ? place.refuse(`needs \`${name}\``) : member.text('text', lengthMax)
}

function optional(place: Place | undefined): string | null {
  if (!hasValue(place) || place.value === '') return null
  return place.text('text', NOTE_LENGTH_MAX)
}

function number(place: Place | undefined): number | null {
  return hasValue(place) ? place.integer(0, Number.MAX_SAFE_INTEGER) : null
}

/**
 * A missing list, or `null`, is empty. Returns `null` if an item was refused, or if there are more than
 * `max`.
 */
function list<Item>(
  place: Place | undefined,
  max: number,
  parse: (item: Place) => Item | null,
): readonly Item[] | null {
  if (!hasValue(place)) return []
  const { value } = place
  if (!Array.isArray(value)) return place.refuse(`is ${shown(value)}; expected a list`)
  if (value.length > max) return place.refuse(`has ${value.length} items; at most ${max}`)
  if (value.length === 0) return []
  const items = place.items().map(parse)
  const good = items.filter((item) => item !== null)
  return good.length === items.length ? good : null
}

function tuple(place: Place, form: string): readonly Place[] | null {
  const { value } = place
  if (Array.isArray(value) && value.length >= 2 && value.length <= TUPLE_LENGTH_MAX) return place.items()
  return place.refuse(`is ${shown(value)}; expected ${form}`)
}

function hasValue(place: Place | undefined): place is Place {
  return place !== undefined && place.value !== undefined && place.value !== null
}

/** The labels in the recordings so far. */
export const KNOWN_LABELS = [
  'human-browser',
  'browser-agent',
  'llm-sdk',
  'orchestrator',
  'mcp-client',
  'crawler',
  /** A library that imitates a browser. */
  'spoofed-browser',
  'http-library',
  /** Headers of a real agent, sent by another program with the same TLS library. */
  'synthetic-ua',
] as const

const NOT_TLS: HelloPrint = {
  ja4: null,
  unresumed: null,
  stable: null,
  traits: null,
  noHello: 'not-tls',
  ja4Source: null,
}
const NO_OPENING = { ja4s: null, ja4x: null, http2: null, pageWeight: null }
const MALFORMED: HelloPrint = { ...NOT_TLS, noHello: 'malformed' }

const HTTP_VERSIONS = ['1.0', '1.1', '2.0'] as const
const VERSIONS: Readonly<Record<(typeof HTTP_VERSIONS)[number], HttpVersion>> = {
  '1.0': '10',
  '1.1': '11',
  '2.0': '20',
}

/** A hello of the maximum length in one-byte records would not fit; no client sends that. */
const HELLO_HEX_MAX = 2 * HELLO_BYTES_MAX
/** Of one connection. HTTP/2 can carry very many; a browser's connection has about a hundred. */
export const REQUESTS_MAX = 10_000
/** Far more than servers accept. */
const HEADERS_MAX = 1000
const HEADER_LENGTH_MAX = 65_536
const TARGET_LENGTH_MAX = 65_536
const NOTE_LENGTH_MAX = 4096
const ENTRIES_MAX = 1000
const FRAMES_MAX = 100_000
const TUPLE_LENGTH_MAX = 8
const U8_MAX = 0xff
const WEIGHT_MAX = 256
const U16_MAX = 0xffff
const U31_MAX = 0x7fff_ffff
const U32_MAX = 0xffff_ffff
const FRAME_HEADERS = 1
const FRAME_PRIORITY = 2
const HEX = /^[0-9a-f]+$/i
const BYTES = /^[\0-\xff]*$/
