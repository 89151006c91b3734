import { readSighting } from '../../plane/sighting-document.ts'
import { type Sighting, SIGHTING_TEXT_MAX } from '../../plane/sighting.ts'
import { idPlace } from '../../store/catalogue/place-ranges.ts'
import { Address } from '../../wire/address-ranges.ts'

/**
 * A Sighting as it may be counted and kept, from a value that anybody may have made; else what is wrong with it. What
 * clients have made of any length is cut, and is text that every database takes.
 */
export function takeIn(value: unknown, nowMs: number): Sighting | string {
  const sighting = readSighting(value)
  if (typeof sighting === 'string') return sighting
  const { id, agent } = sighting
  if (idPlace(id) === null) return 'id is not what a proxy makes'
  if (agent !== null && !AGENT_ID.test(agent)) return 'agent is not what it should be'
  if (sighting.confidence > 1) return 'confidence is not what it should be'
  return {
    ...sighting,
    // A clock that is ahead of ours must not count requests in days that nobody has seen yet.
    seenAtMs: Math.min(Math.trunc(sighting.seenAtMs), nowMs),
    proxy: plain(sighting.proxy, NAME_MAX),
    address: plain(sighting.address, NAME_MAX),
    method: plain(sighting.method, NAME_MAX),
    host: plainOrNull(sighting.host, NAME_MAX),
    path: plain(sighting.path, SIGHTING_TEXT_MAX),
    userAgent: plainOrNull(sighting.userAgent, SIGHTING_TEXT_MAX),
    ja4: fingerprint(sighting.ja4),
    stable: fingerprint(sighting.stable),
    ja4s: fingerprint(sighting.ja4s),
    ja4h: fingerprint(sighting.ja4h),
    ja4x: fingerprint(sighting.ja4x),
    http2: plainOrNull(sighting.http2, SIGHTING_TEXT_MAX),
    category: plainOrNull(sighting.category, NAME_MAX),
    software: plainOrNull(sighting.software, NAME_MAX),
    verified: plainOrNull(sighting.verified, NAME_MAX),
    signer: plainOrNull(sighting.signer, SIGHTING_TEXT_MAX),
    key: fingerprint(sighting.key),
    signatureFault: plainOrNull(sighting.signatureFault, NAME_MAX),
    allegedSigner: plainOrNull(sighting.allegedSigner, SIGHTING_TEXT_MAX),
    evidence: plainList(sighting.evidence),
    rule: plain(sighting.rule, NAME_MAX),
    action: plain(sighting.action, NAME_MAX),
    done: plain(sighting.done, NAME_MAX),
    forged: plainList(sighting.forged),
  }
}

/** 32 bits of who somebody is by address, evenly spread; of IPv6 the /64 counts, which is the least that one is given. */
export function networkHash(address: string): number {
  ADDRESS.read(address)
  const { words, family } = ADDRESS
  return family === 6 ? mixed(words[0]! ^ mixed(words[1]!)) : mixed(words[3]! ^ family)
}

/** The finalizer of MurmurHash3. */
function mixed(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** What is none of ours is no fingerprint: it would be one that nobody knows. */
function fingerprint(value: string | null): string | null {
  return value !== null && value.length <= FINGERPRINT_MAX && FINGERPRINT.test(value) ? value : null
}

function plainList(texts: readonly string[]): readonly string[] {
  return texts.slice(0, LIST_MAX).map((text) => plain(text, NAME_MAX))
}

function plainOrNull(text: string | null, charactersMax: number): string | null {
  return text === null ? null : plain(text, charactersMax)
}

/** Cut, and without what is no text in PostgreSQL: U+0000, and halves of what takes two. */
function plain(text: string, charactersMax: number): string {
  const short = text.length > charactersMax ? text.slice(0, charactersMax) : text
  return UNPLAIN.test(short) ? short.replaceAll('\0', '\u{fffd}').toWellFormed() : short
}

/** One for all: an address is used up before the next is read. */
const ADDRESS = new Address()
const AGENT_ID = /^[a-z0-9][a-z0-9-]{0,63}$/
/** Of whatever type, at most as long as a JA4X and a JA4H with room to spare. */
const FINGERPRINT = /^[\w-]+$/
const FINGERPRINT_MAX = 80
const UNPLAIN = /[\0\ud800-\udfff]/
const NAME_MAX = 255
const LIST_MAX = 32
