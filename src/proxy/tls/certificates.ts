import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { ClientHello } from '../../wire/client-hello.ts'
import type { KeyPair } from './key-pair.ts'

/**
 * Selects the certificate for a client: by the exact requested name, by a wildcard, or the default, which is
 * the first. There may be one certificate of each key type for a name.
 */
export class CertificateStore {
  readonly #base: SecureContextOptions
  #choice: Choice

  /** `base`: the options of every context besides its certificates. The first of `pairs` is the default. */
  constructor(pairs: readonly KeyPair[], base: SecureContextOptions) {
    this.#base = base
    this.#choice = choiceOf(pairs, base)
  }

  /**
   * Replaces all certificates at once, for later handshakes. If one is unusable, it throws and changes
   * nothing.
   */
  replace(pairs: readonly KeyPair[]): void {
    this.#choice = choiceOf(pairs, this.#base)
  }

  /** For clients that do not name a host. TLS itself picks the key type. */
  get default(): SecureContextOptions {
    return this.#choice.defaultOptions
  }

  /**
   * A context with one certificate for `SNICallback`. The hello shows what the client can verify. Without a
   * hello it is the RSA certificate if there is one, because every client can verify RSA.
   */
  contextFor(serverName: string | null, hello: ClientHello | null = null): SecureContext {
    const offers = this.#offersFor(serverName === null ? '' : hostOf(serverName))
    for (const { pair, context } of offers) if (verifies(hello, pair)) return context
    return offers.at(-1)!.context
  }

  /** Whether a certificate is valid for this name. */
  covers(serverName: string): boolean {
    const name = hostOf(serverName)
    return this.#choice.exact.has(name) || this.#choice.wildcard.has(parentOf(name))
  }

  #offersFor(name: string): readonly Offer[] {
    const { exact, wildcard, defaults } = this.#choice
    return exact.get(name) ?? wildcard.get(parentOf(name)) ?? defaults
  }
}

/** Immutable. */
interface Choice {
  readonly exact: ReadonlyMap<string, readonly Offer[]>
  /** Keyed by the part after the first label: `*.example.test` has the key `example.test`. */
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

/** One pair for each key type: the one that expires last, so that a forgotten old one does no harm. */
function pairsFor(name: string, pairs: readonly KeyPair[]): KeyPair[] {
  const byType = new Map<string, KeyPair>()
  for (const pair of pairs) {
    if (!pair.dnsNames.includes(name)) continue
    const other = byType.get(pair.keyType)
    if (other === undefined || other.notAfterMs < pair.notAfterMs) byType.set(pair.keyType, pair)
  }
  return preferred([...byType.values()])
}

/** The first pair, and for every other key type one that covers all its names. */
function defaultPairs(pairs: readonly KeyPair[]): KeyPair[] {
  const first = pairs[0]!
  const byType = new Map([[first.keyType, first]])
  for (const pair of pairs) {
    const isFor = first.dnsNames.every((name) => pair.dnsNames.includes(name))
    if (isFor && !byType.has(pair.keyType)) byType.set(pair.keyType, pair)
  }
  return preferred([...byType.values()])
}

/** RSA last: its signatures are the slowest, and every client can verify them. */
function preferred(pairs: readonly KeyPair[]): KeyPair[] {
  return pairs.toSorted((a, b) => a.keyType.localeCompare(b.keyType))
}

function optionsOf(pairs: readonly KeyPair[], base: SecureContextOptions): SecureContextOptions {
  return { ...base, cert: pairs.map((pair) => pair.chain), key: pairs.map((pair) => pair.key) }
}

/** RFC 8446 §4.2.3. For a client without TLS 1.3 the cipher suites decide as well (RFC 8422 §2). */
function verifies(hello: ClientHello | null, { keyType, signatureScheme }: KeyPair): boolean {
  if (keyType === 'rsa') return true
  if (hello === null || signatureScheme === null) return false
  if (!hello.signatureAlgorithms.includes(signatureScheme)) return false
  return (
    hello.supportedVersions?.includes(TLS_1_3) === true || hello.ciphers.some((id) => ECDHE_ECDSA.has(id))
  )
}

/** In the form of certificates: lower case, without the final dot. */
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
