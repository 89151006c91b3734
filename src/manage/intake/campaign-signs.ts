import * as z from 'zod'
import { REQUEST_KIND, type SeenRequest } from '../../classify/campaign/seen-request.ts'
import { textHash } from '../../classify/campaign/text-hash.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { ProgramFacts } from './campaign-record.ts'
import { networkHash } from './sighting-intake.ts'

/** The names behind the hashes: browsers and sites. */
export interface Names {
  program(hash: number, of: ProgramFacts): void
  host(hash: number, text: string): void
}

/** Fills `seen` from a Sighting, and tells the names if it is a page. */
export function readSeen(sighting: Sighting, salt: number, seen: SeenRequest, names: Names): void {
  const { address, host, program, headerOrder, requestKind, target, seenAtMs } = sighting
  seen.network = networkHash(address, salt)
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

/** The requests of a batch for another process, 38 bytes each, and each name once. */
export function packSeen(batch: readonly Sighting[], salt: number): string {
  const programs = new Map<number, ProgramFacts>()
  const hosts = new Map<number, string>()
  const names: Names = {
    program: (hash, { software, userAgent, stable, http2, ja4 }) => {
      if (!programs.has(hash)) programs.set(hash, { software, userAgent, stable, http2, ja4 })
    },
    host: (hash, text) => hosts.set(hash, text),
  }
  const fromMs = batch.reduce((first, { seenAtMs }) => Math.min(first, seenAtMs), Number.MAX_SAFE_INTEGER)
  const words = new Uint32Array(batch.length * WORDS)
  const seen = blank()
  for (const [i, sighting] of batch.entries()) {
    readSeen(sighting, salt, seen, names)
    const { network, host, program, order, kind, target, atMs } = seen
    words.set([network, host, program, order, kind, target, atMs - fromMs], i * WORDS)
  }
  const packed = Buffer.from(words.buffer).toString('base64')
  return JSON.stringify({ fromMs, words: packed, programs: [...programs], hosts: [...hosts] })
}

/** Passes each request of the text to `note`, in one object that is filled anew. A damaged text has none. */
export function unpackSeen(text: string, names: Names, note: (seen: SeenRequest) => void): void {
  const found = packed.safeParse(jsonIn(text))
  if (!found.success) return
  const { fromMs, words, programs, hosts } = found.data
  for (const [hash, of] of programs) names.program(hash, of)
  for (const [hash, of] of hosts) names.host(hash, of)
  const bytes = Buffer.from(words, 'base64')
  const seen = blank()
  for (let at = 0; at + WORDS * 4 <= bytes.length; at += WORDS * 4) {
    const word = (place: number) => bytes.readUInt32LE(at + place * 4)
    seen.network = word(0)
    seen.host = word(1)
    seen.program = word(2)
    seen.order = word(3)
    seen.kind = word(4)
    seen.target = word(5)
    seen.atMs = fromMs + word(6)
    note(seen)
  }
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

const hash = z.int().min(0).max(0xffff_ffff)
const packed = z.object({
  fromMs: z.number().min(0),
  words: z.string(),
  programs: z.array(
    z.tuple([
      hash,
      z.object({
        software: z.string().nullable(),
        userAgent: z.string().nullable(),
        stable: z.string().nullable(),
        http2: z.string().nullable(),
        ja4: z.string().nullable(),
      }),
    ]),
  ),
  hosts: z.array(z.tuple([hash, z.string()])),
})
const WORDS = 7
