import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { parsePolicyText } from './policy-source.ts'
import type { PolicyReading } from '../policy/policy.ts'
import { Fault } from '../shared/fault.ts'
import { makeSigningKey, type SigningKeys } from '../identity/keys/signing-key.ts'
import { AsnFile } from '../identity/address/asn-file.ts'
import type { RangesStore } from '../identity/address/ranges-store.ts'
import type { SignatureSet } from '../plane/signature-set.ts'
import type { Log } from '../shared/log.ts'
import type { FeedStore, LoadedFeeds } from '../manage/publish/feed-store.ts'
import {
  DEFAULT_POLICY,
  hashOf,
  type PolicyFile,
  type PolicyInForce,
} from '../manage/publish/policy-keeper.ts'
import { type DevelopmentCertificate, developmentCertificate } from '../proxy/tls/development-ca.ts'
import { type KeyPair, type KeyPairSource, loadKeyPairs } from '../proxy/tls/key-pair.ts'
import type { ReloadPart } from './reload.ts'
import type { MergeCounts } from '../store/catalogue/catalogue-merge.ts'
import type { MergeWork, SignatureCompiler } from './signatures/signature-compiler.ts'
import type { SignatureSources } from './signatures/signature-content.ts'
import { makeKeyFile, signingKeysIn } from './signing-key-file.ts'
import { files } from './signatures/signature-files.ts'
import { readBounded, readBoundedText } from '../shared/bounded-file.ts'

/** Certificates from the configured files. Without any, the development certificate. */
export class CertificatePart implements ReloadPart<readonly KeyPair[]> {
  readonly what: string
  /** `null` if the operator has configured certificates. */
  development: DevelopmentCertificate | null = null
  readonly #sources: readonly KeyPairSource[]
  readonly #folder: string
  readonly #log: Log
  readonly #use: (pairs: readonly KeyPair[]) => void
  #inUse: readonly KeyPair[] = []

  constructor(
    what: string,
    sources: readonly KeyPairSource[],
    dataFolder: string,
    log: Log,
    use: (pairs: readonly KeyPair[]) => void,
  ) {
    this.what = what
    this.#sources = sources
    this.#folder = join(dataFolder, 'dev-ca')
    this.#log = log
    this.#use = use
  }

  get inUse(): readonly KeyPair[] {
    return this.#inUse
  }

  async files(): Promise<readonly string[]> {
    return (await this.#currentSources()).flatMap(({ certificateFile, keyFile }) =>
      keyFile === null ? [certificateFile] : [certificateFile, keyFile],
    )
  }

  async load(): Promise<readonly KeyPair[]> {
    const nowMs = Date.now()
    const { pairs, warnings } = await loadKeyPairs(await this.#currentSources(), nowMs)
    for (const pair of pairs) this.#refuseStale(pair, nowMs)
    for (const warning of warnings)
      this.#log.warn('a certificate will cause trouble for clients', { warning })
    this.#inUse = pairs
    return pairs
  }

  use(pairs: readonly KeyPair[]): void {
    this.#use(pairs)
  }

  /** The files to load. Also renews the development certificate, because the process may run for months. */
  async #currentSources(): Promise<readonly KeyPairSource[]> {
    if (this.#sources.length > 0) return this.#sources
    const found = await developmentCertificate(this.#folder, hostname(), Date.now())
    // Stays new, so that a later check does not hide that the CA was created by this process.
    this.development = { ...found, isNew: found.isNew || this.development?.isNew === true }
    return [{ certificateFile: found.file, keyFile: null, passphrase: null }]
  }

  /**
   * Refuses an expired certificate in place of a valid one. At startup an expired
   * certificate is better than none.
   */
  #refuseStale(pair: KeyPair, nowMs: number): void {
    const before = this.#inUse.find(({ name }) => name === pair.name)
    if (before === undefined || pair.notAfterMs > nowMs || before.notAfterMs <= nowMs) return
    const expired = new Date(pair.notAfterMs).toISOString()
    throw new Fault('CERTIFICATE_INVALID', `${pair.name} expired on ${expired}; the one in use has not`)
  }
}

/** Session ticket keys: from a file that all replicas share, or random for this start. */
export class TicketKeyPart implements ReloadPart<Buffer> {
  readonly what = 'ticket-keys'
  readonly isRandom: boolean
  readonly #file: string | null
  readonly #use: (keys: Buffer) => void

  constructor(file: string | null, use: (keys: Buffer) => void) {
    this.#file = file
    this.isRandom = file === null
    this.#use = use
  }

  async files(): Promise<readonly string[]> {
    return this.#file === null ? [] : [this.#file]
  }

  async load(): Promise<Buffer> {
    if (this.#file === null) return randomBytes(TICKET_KEY_BYTES)
    const keys = ticketKeysIn(await readBounded(this.#file).catch((error) => unreadable(this.#file!, error)))
    if (keys !== null) return keys
    const wanted = `${TICKET_KEY_BYTES} bytes, as they are, in hexadecimal or in base64`
    throw new Fault('TICKET_KEY_INVALID', `${this.#file} holds no ticket key; expected ${wanted}`)
  }

  use(keys: Buffer): void {
    this.#use(keys)
  }
}

/** The signing keys of this installation: from a configured file, or created once in the data folder. */
export class SigningKeyPart implements ReloadPart<SigningKeys> {
  readonly what = 'signing-key'
  readonly #file: string
  readonly #isOurs: boolean
  readonly #use: (keys: SigningKeys) => void

  constructor(file: string | null, dataFolder: string, use: (keys: SigningKeys) => void) {
    this.#file = file ?? join(dataFolder, 'signing.jwk')
    this.#isOurs = file === null
    this.#use = use
  }

  async files(): Promise<readonly string[]> {
    if (this.#isOurs) await this.#make()
    return [this.#file]
  }

  async load(): Promise<SigningKeys> {
    return signingKeysIn(this.#file)
  }

  use(keys: SigningKeys): void {
    this.#use(keys)
  }

  async #make(): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true })
    await makeKeyFile(this.#file, [makeSigningKey()]).catch((error: Fault) => {
      if (error.code !== 'FILE_EXISTS') throw error
    })
  }
}

/** The operator's list of networks. */
export class AsnPart implements ReloadPart<AsnFile> {
  readonly what = 'asn-file'
  readonly #file: string
  #inUse: AsnFile | null = null

  constructor(file: string) {
    this.#file = file
  }

  get inUse(): AsnFile | null {
    return this.#inUse
  }

  async files(): Promise<readonly string[]> {
    return [this.#file]
  }

  load(): Promise<AsnFile> {
    return AsnFile.load(this.#file)
  }

  use(file: AsnFile): void {
    this.#inUse = file
  }
}

/** The operator's policy as written. Without a file, the default policy, which tags and blocks nothing. */
export class PolicyPart implements ReloadPart<unknown>, PolicyFile {
  readonly what = 'policy'
  readonly kind = 'file'
  readonly #file: string | null
  readonly #reading: PolicyReading
  readonly #use: (policy: unknown) => void
  #inForce = DEFAULT_POLICY

  constructor(file: string | null, reading: PolicyReading, use: (policy: unknown) => void) {
    this.#file = file
    this.#reading = reading
    this.#use = use
  }

  async files(): Promise<readonly string[]> {
    return this.#file === null ? [] : [this.#file]
  }

  async load(): Promise<unknown> {
    const file = this.#file
    if (file === null) return this.#inForce.document
    try {
      const text = await readBoundedText(file).catch((error) => unreadable(file, error))
      const { document } = parsePolicyText(text, file, this.#reading)
      const hash = hashOf(JSON.stringify(document))
      const sinceMs = Date.now()
      this.#inForce = { ...DEFAULT_POLICY, source: 'file', file, document, hash, sinceMs }
      return document
    } catch (error) {
      this.#inForce = { ...this.#inForce, problems: (error as Error).message.split('\n') }
      throw error
    }
  }

  use(policy: unknown): void {
    this.#use(policy)
  }

  inForce(): PolicyInForce {
    return this.#inForce
  }
}

/**
 * The signatures that come with Gatehouse, then each feed, then the operator's own. If an id occurs twice,
 * the later source wins. Signatures that the API has accepted are added to them.
 */
export class SignaturesPart implements ReloadPart<SignatureSet> {
  readonly what = 'signatures'
  readonly #own: OwnSources
  readonly #feeds: FeedStore
  readonly #compiler: SignatureCompiler
  readonly #use: (set: SignatureSet) => void
  readonly #accepted: () => Promise<string>
  readonly #ranges: RangesStore | null
  #loadedFeeds: LoadedFeeds = new Map()

  constructor(from: SignaturesFrom, compiler: SignatureCompiler, use: (set: SignatureSet) => void) {
    this.#own = from.own
    this.#feeds = from.feeds
    this.#accepted = from.accepted
    this.#ranges = from.ranges
    this.#compiler = compiler
    this.#use = use
  }

  async files(): Promise<readonly string[]> {
    const { paths, weightsFile } = this.#own
    // A folder is watched through a name inside it, so that new files are noticed too.
    const own = paths.flatMap((path) => [path, `${path}/.`])
    const fetched = this.#ranges?.files() ?? []
    const found = await Promise.all([this.#feeds.files(), files(paths), fetched])
    return [...new Set([...own, ...found.flat(), ...(weightsFile === null ? [] : [weightsFile])])]
  }

  async load(): Promise<SignatureSet> {
    const loaded = await this.#feeds.load()
    const set = await this.#compiler.make(await this.#sources(loaded))
    this.#loadedFeeds = loaded
    return set
  }

  /** Makes the catalogue in the database equal to the files. Throws a Fault. */
  async merge(work: Omit<MergeWork, 'kind' | 'sources'>): Promise<MergeCounts> {
    return this.#compiler.merge({ ...work, sources: await this.#sources(await this.#feeds.load()) })
  }

  use(set: SignatureSet): void {
    this.#use(set)
    this.#feeds.use(this.#loadedFeeds)
  }

  async #sources(feeds: LoadedFeeds): Promise<SignatureSources> {
    const fetched = await withFetched(this.#own, feeds, this.#ranges)
    return { ...fetched, accepted: await this.#accepted() }
  }
}

/** Where signatures come from. */
export interface SignaturesFrom {
  readonly own: OwnSources
  readonly feeds: FeedStore
  /** The signatures from the API. */
  readonly accepted: () => Promise<string>
  /** The fetched address ranges. `null`: none are fetched. */
  readonly ranges: RangesStore | null
}

/** The operator's own files. */
export type OwnSources = Omit<SignatureSources, 'feeds' | 'accepted' | 'ranges'>

/**
 * Adds feeds and address ranges. Their stores report invalid downloads; a feed
 * then falls back to an older copy.
 */
export async function withFetched(
  own: OwnSources,
  feeds: LoadedFeeds,
  ranges: RangesStore | null,
): Promise<SignatureSources> {
  const payloads = [...feeds.values()].flatMap(({ feed }) => feed?.payload ?? [])
  return { ...own, feeds: payloads, ranges: (await ranges?.load()) ?? [] }
}

function ticketKeysIn(bytes: Buffer): Buffer | null {
  if (bytes.length === TICKET_KEY_BYTES) return bytes
  const text = bytes.toString('latin1').trim()
  if (/^[0-9a-f]{96}$/i.test(text)) return Buffer.from(text, 'hex')
  return /^[A-Za-z0-9+/]{64}$/.test(text) ? Buffer.from(text, 'base64') : null
}

function unreadable(file: string, error: NodeJS.ErrnoException): never {
  throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${error.code})`, { cause: error })
}

const TICKET_KEY_BYTES = 48
/**
 * A stolen key exposes the sessions of this period. A session that outlives its key costs one full handshake.
 */
export const TICKET_KEY_LIFE_MS = 86_400_000
