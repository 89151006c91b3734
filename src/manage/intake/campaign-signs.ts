import * as z from 'zod'
import { REQUEST_KIND, type SeenRequest } from '../../classify/campaign/seen-request.ts'
import { textHash } from '../../classify/campaign/text-hash.ts'
import { type Sighting, SIGHTING_TEXT_MAX } from '../../plane/sighting.ts'
import { type ProgramFacts, programFacts } from './campaign-record.ts'
import { clientHash } from './sighting-intake.ts'

/** The names behind the hashes: browsers and sites. */
export interface Names {
  program(hash: number, of: ProgramFacts): void
  host(hash: number, text: string): void
}

/** Fills `seen` from a Sighting, and tells the names if it is a page. */
export function readSeen(sighting: Sighting, salt: number, seen: SeenRequest, names: Names): void {
  const { host, program, headerOrder, requestKind, target, seenAtMs } = sighting
  seen.network = clientHash(sighting, salt)
  seen.host = host === null ? 0 : textHash(host)
  seen.program = program
  seen.order = headerOrder
  seen.kind = requestKind
  seen.target = target
  seen.atMs = seenAtMs
  if (requestKind !== REQUEST_KIND.page) return
  names.program(program, sighting)
  if (host !== null) names.host(seen.host, host)
}

/** The requests of a batch for another process, 43 bytes each, and each name once. */
export function packSeen(batch: readonly Sighting[], salt: number): string {
  const programs = new Map<number, ProgramFacts>()
  const hosts = new Map<number, string>()
  const names: Names = {
    program: (hash, { software, userAgent, stable, http2, ja4 }) => {
      if (!programs.has(hash)) programs.set(hash, { software, userAgent, stable, http2, ja4 })
    },
    host: (hash, text) => hosts.set(hash, text),
  }
  const words = new Uint32Array(batch.length * WORDS)
  const seen = blank()
  let at = 0
  for (const sighting of batch) {
    readSeen(sighting, salt, seen, names)
    words[at] = seen.network
    words[at + 1] = seen.host
    words[at + 2] = seen.program
    words[at + 3] = seen.order
    words[at + 4] = seen.kind
    words[at + 5] = seen.target
    words[at + 6] = seen.atMs
    words[at + 7] = seen.atMs / HIGH
    at += WORDS
  }
  const packed = Buffer.from(words.buffer).toString('base64')
  return JSON.stringify({ words: packed, programs: [...programs], hosts: [...hosts] })
}

/** Tells the leader to forget these networks. */
export function forgetSigns(networks: readonly number[]): string {
  return JSON.stringify({ words: '', programs: [], hosts: [], forgotten: networks })
}

/**
 * Passes each request of the text to `note`, in one object that is filled anew. A damaged text has none. Returns the networks
 * to forget.
 */
export function unpackSeen(text: string, names: Names, note: (seen: SeenRequest) => void): readonly number[] {
  const found = packed.safeParse(jsonIn(text))
  if (!found.success) return []
  const { programs, hosts } = found.data
  for (const [hash, of] of programs) names.program(hash, of)
  for (const [hash, of] of hosts) names.host(hash, of)
  const bytes = Buffer.from(found.data.words, 'base64')
  const words = new Uint32Array(Math.floor(bytes.length / BYTES) * WORDS)
  Buffer.from(words.buffer).set(bytes.subarray(0, words.byteLength))
  const seen = blank()
  for (let at = 0; at < words.length; at += WORDS) {
    seen.network = words[at]!
    seen.host = words[at + 1]!
    seen.program = words[at + 2]!
    seen.order = words[at + 3]!
    seen.kind = words[at + 4]!
    seen.target = words[at + 5]!
    seen.atMs = words[at + 6]! + words[at + 7]! * HIGH
    if (seen.kind <= REQUEST_KIND.part) note(seen)
  }
  return found.data.forgotten ?? []
}

export function blank(): SeenRequest {
  return { network: 0, host: 0, program: 0, order: 0, kind: 0, target: 0, atMs: 0 }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** One, and one for each key of hashes. */
const FORGOTTEN_MAX = 1_000
const hash = z.int().min(0).max(0xffff_ffff)
const packed = z.object({
  words: z.string(),
  programs: z.array(z.tuple([hash, programFacts])),
  hosts: z.array(z.tuple([hash, z.string().max(SIGHTING_TEXT_MAX)])),
  forgotten: z.array(hash).max(FORGOTTEN_MAX).optional(),
})
const WORDS = 8
const BYTES = WORDS * 4
/** The time takes two words. */
const HIGH = 2 ** 32
