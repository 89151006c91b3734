import { readFileSync, writeFileSync } from 'node:fs'
import type { Transport } from './hello-builder.ts'
import type { Bug, Rule } from './rules.ts'

/** A committed case: what is read, and what it is to give. Bytes are in hex. */
interface Cited {
  readonly name: string
  readonly rule: Rule
  /** The mistake of others that it shows. */
  readonly bug?: Bug
  /** Where the input is from. */
  readonly source: string
}

export interface Ja4Vector extends Cited {
  readonly transport: Transport
  readonly handshake_hex: string
  readonly ja4: string
  readonly ja4_r: string
  readonly ja4_o: string
  readonly ja4_ro: string
}

export interface Ja4sVector extends Cited {
  readonly transport: Transport
  readonly handshake_hex: string
  readonly ja4s: string
  readonly ja4s_r: string
}

export interface Ja4hVector extends Cited {
  readonly method: string
  readonly version: '10' | '11' | '20' | '30'
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly ja4h: string
  readonly ja4h_r: string
}

export interface Ja4xVector extends Cited {
  readonly der_hex: string
  readonly ja4x: string
  readonly ja4x_r: string
}

export type FramingVector = StreamVector | HandshakeVector

/** One direction of a TCP connection. Neither fingerprint nor fault: more bytes are needed. */
export interface StreamVector extends Cited {
  readonly side: 'client' | 'server'
  readonly stream_hex: readonly string[]
  /** The JA4 or JA4S of its first message. */
  readonly fingerprint: string | null
  readonly fault: string | null
}

/** Both directions: the messages of a handshake over TCP, or datagrams. */
export interface HandshakeVector extends Cited {
  readonly transport: 'tcp' | 'dtls'
  readonly flights_hex: readonly (readonly [from: 'client' | 'server', hex: string])[]
  readonly finding: {
    readonly ja4: string
    readonly ja4_later: readonly string[]
    readonly ja4s: string | null
    readonly ja4s_later: readonly string[]
    readonly hello_retry_request: boolean
    readonly ja4x: readonly string[]
    readonly ja4x_client: readonly string[]
  } | null
}

export interface Vectors {
  readonly ja4: readonly Ja4Vector[]
  readonly ja4s: readonly Ja4sVector[]
  readonly ja4h: readonly Ja4hVector[]
  readonly ja4x: readonly Ja4xVector[]
  readonly framing: readonly FramingVector[]
}

export function readVectors(): Vectors {
  const read = (name: keyof Vectors) => JSON.parse(readFileSync(fileOf(name), 'utf8'))
  return {
    ja4: read('ja4'),
    ja4s: read('ja4s'),
    ja4h: read('ja4h'),
    ja4x: read('ja4x'),
    framing: read('framing'),
  }
}

/** A field a line, so that a changed expectation is one changed line. */
export function writeVectors(vectors: Vectors): void {
  for (const [name, cases] of Object.entries(vectors)) {
    const written = cases.map((vector: object) => {
      const fields = Object.entries(vector).map(
        ([field, value]) => `  ${JSON.stringify(field)}: ${JSON.stringify(value)}`,
      )
      return ` {\n${fields.join(',\n')}\n }`
    })
    writeFileSync(fileOf(name), `[\n${written.join(',\n')}\n]\n`)
  }
}

function fileOf(name: string): URL {
  return new URL(`${name}.json`, import.meta.url)
}
