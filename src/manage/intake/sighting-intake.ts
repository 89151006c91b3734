import { readSighting } from '../../plane/sighting-document.ts'
import { isHash, visitorIn } from '../../plane/privacy/address-form.ts'
import { type Sighting, SIGHTING_TEXT_MAX } from '../../plane/sighting.ts'
import { idPlace } from '../../store/catalogue/place-ranges.ts'
import { Address } from '../../wire/address-ranges.ts'
import { networkHashOf, saltedHash } from '../../wire/network-hash.ts'

/**
 * Turns an untrusted value into a Sighting that can be counted and stored, or returns what is wrong with it.
 * Text from clients is truncated and reduced to what every database accepts.
 */
export function takeIn(value: unknown, nowMs: number): Sighting | string {
  const sighting = readSighting(value)
  if (typeof sighting === 'string') return sighting
  const { id, agent } = sighting
  if (idPlace(id) === null) return 'id is not what a proxy makes'
  if (agent !== null && !AGENT_ID.test(agent)) return 'agent is not what it should be'
  if (sighting.confidence > 1) return 'confidence is not what it should be'
  if (sighting.nameConfidence > 1) return 'nameConfidence is not what it should be'
  return {
    ...sighting,
    // A sender whose clock is ahead must not count requests in future days.
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
    purposes: plainList(sighting.purposes),
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
    campaign: plainOrNull(sighting.campaign, NAME_MAX),
    mcpMethod: plainOrNull(sighting.mcpMethod, SIGHTING_TEXT_MAX),
    mcpTool: plainOrNull(sighting.mcpTool, SIGHTING_TEXT_MAX),
  }
}

/** What a Sighting has of its client. A stored one has no `visitor`. */
export type SeenClient = Pick<Sighting, 'address'> & Partial<Pick<Sighting, 'visitor'>>

/** A hash of the client, whatever is known of its address. */
export function clientHash({ address, visitor = null }: SeenClient, salt = 0): number {
  return visitor === null ? networkHash(address, salt) : saltedHash(visitor, salt)
}

/** `address`: in a form of privacy/address-form.ts. */
export function networkHash(address: string, salt = 0): number {
  if (isHash(address)) return saltedHash(visitorIn(address), salt)
  ADDRESS.read(address)
  if (ADDRESS.family === 0) ADDRESS.read(firstAddress(address))
  return networkHashOf(ADDRESS, salt)
}

/** Of a network. */
function firstAddress(network: string): string {
  return network.slice(0, Math.max(network.indexOf('/'), 0))
}

/**
 * A value with an unknown form is dropped. Otherwise it would count as a fingerprint without a known owner.
 */
function fingerprint(value: string | null): string | null {
  return value !== null && value.length <= FINGERPRINT_MAX && FINGERPRINT.test(value) ? value : null
}

function plainList(texts: readonly string[]): readonly string[] {
  return texts.length === 0 ? texts : texts.slice(0, LIST_MAX).map((text) => plain(text, NAME_MAX))
}

function plainOrNull(text: string | null, charactersMax: number): string | null {
  return text === null ? null : plain(text, charactersMax)
}

/** Truncates the text and replaces what PostgreSQL rejects in text: U+0000 and lone surrogates. */
function plain(text: string, charactersMax: number): string {
  const short = text.length > charactersMax ? copied(text.slice(0, charactersMax)) : text
  return UNPLAIN.test(short) ? short.replaceAll('\0', '\u{fffd}').toWellFormed() : short
}

/** A slice keeps the whole text in memory for as long as it is kept itself. */
function copied(slice: string): string {
  return Buffer.from(slice, 'utf16le').toString('utf16le')
}

/** Shared by all calls: each address is used before the next one is read. */
const ADDRESS = new Address()
const AGENT_ID = /^[a-z0-9][a-z0-9-]{0,63}$/
/** For all types: long enough for a JA4X and a JA4H, with room to spare. */
const FINGERPRINT = /^[\w-]+$/
const FINGERPRINT_MAX = 80
const UNPLAIN = /[\0\ud800-\udfff]/
const NAME_MAX = 255
const LIST_MAX = 32
