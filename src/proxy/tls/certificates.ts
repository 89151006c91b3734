import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { ClientHello } from '../../wire/client-hello.ts'
import type { KeyPair } from './key-pair.ts'

/**
 * Which certificate a client gets: by the exact name it asks for, by a wildcard, or the default, which is the first.
 * For one name there may be one certificate of each key type.
 */
export class CertificateStore {
  readonly #base: SecureContextOptions
  #choice: Choice

  /** `base`: what every context has besides its certificates. The first of `pairs` is the default. */
  constructor(pairs: readonly KeyPair[], base: SecureContextOptions) {
    this.#base = base
    this.#choice = choiceOf(pairs, base)
  }

  /** All at once, for handshakes from here on; throws, and changes nothing, when one of them cannot be used. */
  replace(pairs: readonly KeyPair[]): void {
    this.#choice = choiceOf(pairs, this.#base)
  }

  /** For clients that name no host. Here TLS itself picks the key type. */
  get default(): SecureContextOptions {
    return this.#choice.defaultOptions
  }

  /**
   * A context for `SNICallback`, which takes one certificate from it: the hello says what the client can verify.
   * Without a hello it is RSA, which all can, where there is one.
   */
  contextFor(serverName: string | null, hello: ClientHello | null = null): SecureContext {
    const offers = this.#offersFor(serverName === null ? '' : hostOf(serverName))
    for (const { pair, context } of offers) if (verifies(hello, pair)) return context
    return offers.at(-1)!.context
  }

  /** Whether one of the certificates is for this name. */
  covers(serverName: string): boolean {
    const name = hostOf(serverName)
    return this.#choice.exact.has(name) || this.#choice.wildcard.has(parentOf(name))
  }

  #offersFor(name: string): readonly Offer[] {
    const { exact, wildcard, defaults } = this.#choice
    return exact.get(name) ?? wildcard.get(parentOf(name)) ?? defaults
  }
}

/** Never changed once made. */
interface Choice {
  readonly exact: ReadonlyMap<string, readonly Offer[]>
  /** By what follows the first label: `*.example.test` is under `example.test`. */
  readonly wildcard: ReadonlyMap<string, readonly Offer[]>
  readonly defaults: readonly Offer[]
  readonly defaultOptions: SecureContextOptions
}

interface Offer {
  readonly pair: KeyPair
  readonly context: SecureContext
}

function choiceOf(pairs: readonly KeyPair[], base: SecureContextOptions): Choice {
  const offers = new Map(
    pairs.map((pair) => [pair, { pair, context: createSecureContext(optionsOf([pair], base)) }]),
  )
  const offersOf = (group: readonly KeyPair[]) => group.map((pair) => offers.get(pair)!)

  const exact = new Map<string, readonly Offer[]>()
  const wildcard = new Map<string, readonly Offer[]>()
  for (const name of new Set(pairs.flatMap((pair) => pair.dnsNames))) {
    const group = offersOf(pairsFor(name, pairs))
    if (name.startsWith('*.')) wildcard.set(name.slice(2), group)
    else exact.set(name, group)
  }
  const defaults = defaultPairs(pairs)
  return { exact, wildcard, defaults: offersOf(defaults), defaultOptions: optionsOf(defaults, base) }
}

/** One of each key type: the one that lives longest, so that a forgotten old one does no harm. */
function pairsFor(name: string, pairs: readonly KeyPair[]): KeyPair[] {
  const byType = new Map<string, KeyPair>()
  for (const pair of pairs) {
    if (!pair.dnsNames.includes(name)) continue
    const other = byType.get(pair.keyType)
    if (other === undefined || other.notAfterMs < pair.notAfterMs) byType.set(pair.keyType, pair)
  }
  return preferred([...byType.values()])
}

/** The first, and those of other key types that are for all the names it is for. */
function defaultPairs(pairs: readonly KeyPair[]): KeyPair[] {
  const first = pairs[0]!
  const byType = new Map([[first.keyType, first]])
  for (const pair of pairs) {
    const isFor = first.dnsNames.every((name) => pair.dnsNames.includes(name))
    if (isFor && !byType.has(pair.keyType)) byType.set(pair.keyType, pair)
  }
  return preferred([...byType.values()])
}

/** RSA last: its signatures cost us the most, and every client can verify them. */
function preferred(pairs: readonly KeyPair[]): KeyPair[] {
  return pairs.toSorted((a, b) => a.keyType.localeCompare(b.keyType))
}

function optionsOf(pairs: readonly KeyPair[], base: SecureContextOptions): SecureContextOptions {
  return { ...base, cert: pairs.map((pair) => pair.chain), key: pairs.map((pair) => pair.key) }
}

/** RFC 8446 §4.2.3 and, for a client that has TLS 1.2 at most, RFC 8422 §2: its cipher suites decide as well. */
function verifies(hello: ClientHello | null, { keyType, signatureScheme }: KeyPair): boolean {
  if (keyType === 'rsa') return true
  if (hello === null || signatureScheme === null) return false
  if (!hello.signatureAlgorithms.includes(signatureScheme)) return false
  return (
    hello.supportedVersions?.includes(TLS_1_3) === true || hello.ciphers.some((id) => ECDHE_ECDSA.has(id))
  )
}

/** As certificates have it: in lower case, without the root's dot. */
function hostOf(serverName: string): string {
  const name = serverName.toLowerCase()
  return name.endsWith('.') ? name.slice(0, -1) : name
}

/** A wildcard stands for one label (RFC 9525 §6.3). */
function parentOf(name: string): string {
  const dot = name.indexOf('.')
  return dot < 1 ? '' : name.slice(dot + 1)
}

const TLS_1_3 = 0x0304
const ECDHE_ECDSA: ReadonlySet<number> = new Set([
  ...[0xc02b, 0xc02c, 0xcca9, 0xc0ac, 0xc0ad], // AES-GCM, ChaCha20, AES-CCM
  ...[0xc023, 0xc024, 0xc009, 0xc00a], // AES-CBC
])
