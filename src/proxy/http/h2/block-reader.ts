import { HpackDecoder } from '../../../wire/h2/hpack-decoder.ts'
import { HpackScratch } from '../../../wire/h2/scratch.ts'
import { ASKS_UPGRADE } from '../../../wire/request-head.ts'
import type { ReceivedHead } from '../../connection/received-head.ts'
import {
  type BadRequest,
  checkHttp2,
  type Http2RequestFacts,
  LARGE_HEADERS,
  malformed,
  type RequestLimits,
} from '../../connection/request-check.ts'
import { FieldRules } from './field-rules.ts'

/** What a header block asks for. `fields` are those that were read. */
export type Asked =
  | {
      readonly kind: 'request'
      readonly fields: readonly string[]
      readonly hasEnded: boolean
      readonly head: ReceivedHead
      readonly facts: Http2RequestFacts
    }
  | {
      readonly kind: 'refused'
      readonly fields: readonly string[]
      readonly hasEnded: boolean
      readonly why: BadRequest
      readonly isMalformed: boolean
    }
  /** A compression error: nothing more can be read on the connection. */
  | { readonly kind: 'undecodable' }

/** Reads the header blocks of one connection, each in its turn: they share a compression table. */
export class BlockReader {
  readonly #limits: RequestLimits
  readonly #decoder: HpackDecoder
  readonly #rules = new FieldRules()

  constructor(limits: RequestLimits) {
    this.#limits = limits
    const { headerBytesMax: listBytesMax, headerCountMax } = limits
    const fieldsMax = headerCountMax + CRUMBS_MAX
    this.#decoder = new HpackDecoder({ tableBytesMax: TABLE_BYTES, listBytesMax, fieldsMax }, SCRATCH)
  }

  /** `hasEnded`: the request has no body. */
  request(block: Uint8Array, hasEnded: boolean): Asked {
    const fields: string[] = []
    const decoded = this.#decoder.decode(block, fields)
    if (decoded === 'malformed') return UNDECODABLE
    const refused = (why: BadRequest, isMalformed: boolean) =>
      ({ kind: 'refused', fields, hasEnded, why, isMalformed }) as const
    if (decoded === 'too-large') return refused(LARGE_HEADERS, false)
    const fault = this.#rules.request(fields)
    if (fault !== null) return refused(malformed(fault), true)
    const facts = checkHttp2(fields, hasEnded, this.#limits)
    if (!facts.isGood) return refused(facts, MALFORMED.has(facts.code))
    const { method, target, hasOddNames } = facts
    const rawHeaders = facts.isTunnel ? [...fields, ...ASKS_UPGRADE] : fields
    const { neverIndexed } = this.#decoder
    const head: ReceivedHead = { method, target, version: '20', rawHeaders, hasOddNames, neverIndexed }
    return { kind: 'request', fields, hasEnded, head, facts }
  }

  trailers(block: Uint8Array): readonly string[] | 'malformed' | 'undecodable' {
    const fields: string[] = []
    const decoded = this.#decoder.decode(block, fields)
    if (decoded === 'malformed') return 'undecodable'
    return decoded === 'too-large' || FieldRules.trailers(fields) !== null ? 'malformed' : fields
  }
}

/** A gRPC call may stay silent as long as both sides like. */
export function isGrpc(fields: readonly string[]): boolean {
  const at = fields.indexOf('content-type')
  return at !== -1 && fields[at + 1]!.startsWith('application/grpc')
}

/** The codes of `checkHttp2` for requests that RFC 9113 calls malformed (§8.1.1, §8.3.1). */
const MALFORMED: ReadonlySet<string> = new Set([
  ...['target', 'method', 'name', 'no-host', 'hosts', 'host', 'content-length', 'malformed-field'],
])
const SCRATCH = new HpackScratch()
const UNDECODABLE = { kind: 'undecodable' } as const
/** The table size until SETTINGS change it, which ours do not. */
const TABLE_BYTES = 4_096
/** Pseudo-headers and split cookies, which come on top of the counted headers. */
const CRUMBS_MAX = 256
