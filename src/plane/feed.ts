import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { parseSoftwareList, type Software } from '../classify/known/software.ts'
import { Fault } from '../shared/fault.ts'
import { timestampMs } from '../policy/policy.ts'
import { DocumentFault, type DocumentProblem, Place, shown } from '../shared/problem.ts'

/**
 * A published, signed list of Software.
 *
 * It travels as a DSSE envelope: the payload in base64, and Ed25519 signatures over exactly these bytes and
 * their type. The signed bytes are the parsed bytes, so no canonical form is needed, and nothing is parsed
 * before a trusted key has signed it. Because the type is signed, a signature made for another purpose cannot
 * pass as a feed signature.
 */
export interface Feed {
  /** Signed too: a feed cannot pass as another feed of the same key. */
  readonly name: string
  /** Rises with each published version. */
  readonly version: number
  readonly createdMs: number
  /** `Infinity`: never. */
  readonly expiresMs: number
  readonly software: readonly Software[]
  /** The signed bytes. */
  readonly payload: Buffer
}

/** A Feed without its software. */
export type FeedFacts = Omit<Feed, 'software'>

/** A public key as written in settings. */
export interface FeedKey {
  /** The first 128 bits of the SHA-256 of the key. It only tells which key to try. */
  readonly id: string
  /** `ed25519:` and the 32 bytes in base64. */
  readonly text: string
  readonly key: KeyObject
}

/** Why a feed was rejected. */
export type FeedReason = (typeof FEED_REASONS)[number]

export class FeedFault extends Fault {
  readonly reason: FeedReason

  constructor(reason: FeedReason, message: string, options?: ErrorOptions) {
    super(`FEED_${reason.replaceAll('-', '_').toUpperCase()}`, message, options)
    this.name = 'FeedFault'
    this.reason = reason
  }
}

/** Opens a feed. Throws a FeedFault unless one of the keys signed it, complete and for this name. */
export function openFeed(envelope: Uint8Array, name: string, keys: readonly FeedKey[]): Feed {
  const { payload, signatures } = readEnvelope(envelope)
  const signed = signedBytes(payload)
  const isSigned = signatures.some(({ keyId, bytes }) =>
    keys.some(({ id, key }) => (keyId === null || keyId === id) && verify(null, signed, key, bytes)),
  )
  if (isSigned) return readPayload(payload, name)
  const given = signatures.map(({ keyId }) => keyId ?? 'a key it does not name').join(', ')
  const isKnown = signatures.some(({ keyId }) => keys.some(({ id }) => id === keyId))
  const why = isKnown ? 'the signature is not of these bytes' : `it is signed with ${given}`
  throw new FeedFault('signature', `no key of the configuration has signed it: ${why}`)
}

/** The software of a Feed, from its signed bytes. */
export function softwareInFeed(payload: Uint8Array): readonly Software[] {
  return softwareIn((json(payload, 'the payload') as { software?: unknown }).software)
}

/**
 * Whether a fetched feed may replace the newest known one: `same` bytes or a `newer` version. Throws a
 * FeedFault for an older version, for different bytes under the same version, and for an expired feed.
 */
export function succession(next: FeedFacts, newest: FeedFacts | null, nowMs: number): 'same' | 'newer' {
  refuseExpired(next, nowMs)
  if (newest === null || next.version > newest.version) return 'newer'
  if (next.version < newest.version)
    throw new FeedFault(
      'rolled-back',
      `version ${next.version} is offered, and version ${newest.version} was here`,
    )
  if (next.payload.equals(newest.payload)) return 'same'
  throw new FeedFault('conflict', `version ${next.version} was here with other content`)
}

export function refuseExpired({ version, expiresMs }: FeedFacts, nowMs: number): void {
  if (expiresMs > nowMs) return
  throw new FeedFault('expired', `version ${version} expired on ${new Date(expiresMs).toISOString()}`)
}

/** The publisher's input. Times are RFC 3339. */
export interface FeedContent {
  readonly name: string
  readonly version: number
  readonly created: string
  readonly expires: string | null
  /** In the format of signature files. */
  readonly software: readonly unknown[]
}

/**
 * The envelope as text, signed with each key: with the old and the new one during a key change. Throws a
 * FeedFault if no consumer would accept it.
 */
export function signFeed(content: FeedContent, privateKeys: readonly KeyObject[]): string {
  const { expires, ...always } = content
  const { name, version, created, software } = always
  const payload = Buffer.from(
    JSON.stringify({ name, version, created, ...(expires !== null && { expires }), software }),
  )
  const signed = signedBytes(payload)
  const signatures = privateKeys.map((key) => {
    return { keyid: feedKeyOf(key).id, sig: sign(null, signed, key).toString('base64') }
  })
  const envelope = { payloadType: PAYLOAD_TYPE, payload: payload.toString('base64'), signatures }
  const text = `${JSON.stringify(envelope)}\n`
  openFeed(Buffer.from(text), name, privateKeys.map(feedKeyOf))
  return text
}

export function parseFeedKey(text: string): FeedKey {
  const [, encoded] = KEY.exec(text) ?? []
  if (encoded === undefined)
    throw new Fault(
      'FEED_KEY_INVALID',
      `${shown(text)} is not a feed key: expected ed25519: and 32 bytes in base64`,
    )
  const bytes = Buffer.from(encoded, 'base64')
  const key = createPublicKey({ key: Buffer.concat([SPKI_START, bytes]), format: 'der', type: 'spki' })
  const id = createHash('sha256').update(bytes).digest('hex').slice(0, KEY_ID_LENGTH)
  return { id, text, key }
}

/** The public key of a private or public key. */
export function feedKeyOf(key: KeyObject): FeedKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  const bytes = publicKey.export({ format: 'der', type: 'spki' }).subarray(SPKI_START.length)
  return parseFeedKey(`ed25519:${bytes.toString('base64')}`)
}

/** PEM (PKCS#8). */
export function makeFeedPrivateKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
}

export function parseFeedPrivateKey(pem: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (error) {
    throw new Fault('FEED_KEY_INVALID', 'holds no private key in PEM that can be read without a passphrase', {
      cause: error,
    })
  }
  if (key.asymmetricKeyType === 'ed25519') return key
  throw new Fault('FEED_KEY_INVALID', `holds a private key for ${key.asymmetricKeyType}; expected ed25519`)
}

interface Envelope {
  readonly payload: Buffer
  readonly signatures: readonly { readonly keyId: string | null; readonly bytes: Buffer }[]
}

/** Ignores unknown members, as DSSE requires. */
function readEnvelope(bytes: Uint8Array): Envelope {
  const value = json(bytes, 'the envelope')
  if (typeof value !== 'object' || value === null) throw malformed(`the envelope is ${shown(value)}`)
  const { payloadType, payload, signatures } = value as Readonly<Record<string, unknown>>
  if (payloadType !== PAYLOAD_TYPE)
    throw malformed(`payloadType is ${shown(payloadType)}; this program reads ${PAYLOAD_TYPE}`)
  if (!Array.isArray(signatures) || signatures.length === 0) throw malformed('it has no signatures')
  if (signatures.length > SIGNATURES_MAX)
    throw malformed(`it has ${signatures.length} signatures; at most ${SIGNATURES_MAX}`)
  return { payload: base64(payload, 'payload'), signatures: signatures.map(readSignature) }
}

function readSignature(value: unknown): Envelope['signatures'][number] {
  if (typeof value !== 'object' || value === null) throw malformed(`a signature is ${shown(value)}`)
  const { keyid, sig } = value as Readonly<Record<string, unknown>>
  const isNamed = typeof keyid === 'string' && /^[!-~]{1,256}$/.test(keyid)
  return { keyId: isNamed ? keyid : null, bytes: base64(sig, 'sig') }
}

/** DSSE's pre-authentication encoding: it puts lengths first, so that it has one reading only. */
function signedBytes(payload: Buffer): Buffer {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `
  return Buffer.concat([Buffer.from(head), payload])
}

function readPayload(payload: Buffer, expectedName: string): Feed {
  const problems: DocumentProblem[] = []
  const place = Place.of(json(payload, 'the payload'), problems)
  const members = place.members(PAYLOAD_MEMBERS)
  for (const name of PAYLOAD_MEMBERS) {
    if (place.isMapping && name !== 'expires' && !members.has(name)) place.refuse(`needs \`${name}\``)
  }
  const name = members.get('name')?.text('a name') ?? null
  const version = members.get('version')?.integer(1, Number.MAX_SAFE_INTEGER) ?? null
  const created = members.get('created')
  const expires = members.get('expires')
  const createdMs = created === undefined ? null : timestampMs(created)
  const expiresMs = expires === undefined ? Number.POSITIVE_INFINITY : timestampMs(expires)
  const list = members.get('software')
  if (name !== null && name !== expectedName)
    members.get('name')!.refuse(`is ${shown(name)}; this feed is "${expectedName}"`)
  if (list !== undefined && !Array.isArray(list.value))
    list.refuse(`is ${shown(list.value)}; expected a list`)
  refuseAny(problems)
  return Object.freeze({
    name: name!,
    version: version!,
    createdMs: createdMs!,
    expiresMs: expiresMs!,
    software: softwareIn(list!.value),
    payload,
  })
}

function softwareIn(document: unknown): readonly Software[] {
  try {
    return parseSoftwareList(document)
  } catch (error) {
    if (error instanceof DocumentFault) throw new FeedFault('content', error.message, { cause: error })
    throw error
  }
}

function refuseAny(problems: readonly DocumentProblem[]): void {
  if (problems.length > 0) throw new FeedFault('content', new DocumentFault('FEED_INVALID', problems).message)
}

function json(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    // The parser's own message quotes the text.
    throw malformed(`${what} is not JSON in UTF-8`, { cause: error })
  }
}

/** Either base64 alphabet, as DSSE allows. */
function base64(value: unknown, name: string): Buffer {
  if (typeof value === 'string' && BASE64.test(value)) return Buffer.from(value, 'base64')
  throw malformed(`${name} is not base64`)
}

function malformed(what: string, options?: ErrorOptions): FeedFault {
  return new FeedFault('malformed', what, options)
}

export const FEED_REASONS = [
  'network',
  'timeout',
  'address',
  'redirect',
  'status',
  'too-large',
  'configuration',
  'malformed',
  'signature',
  'content',
  'expired',
  'rolled-back',
  'conflict',
  'storage',
] as const
const PAYLOAD_TYPE = 'application/vnd.gatehouse.signature-feed.v1+json'
const PAYLOAD_MEMBERS = ['name', 'version', 'created', 'expires', 'software']
/** More keys than any key change needs. */
const SIGNATURES_MAX = 16
const KEY_ID_LENGTH = 32
const KEY = /^ed25519:([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)$/
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
/** The DER prefix of a 32-byte Ed25519 key (RFC 8410 §4). */
const SPKI_START = Buffer.from('302a300506032b6570032100', 'hex')
