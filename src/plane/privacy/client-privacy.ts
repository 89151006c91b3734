import { shownNetwork } from '../../wire/ip-address.ts'
import type { Sighting } from '../sighting.ts'
import { type AddressForm, AddressHasher } from './address-form.ts'
import { pathPattern, pathWithoutSecrets } from './path-form.ts'
import { productsIn } from './user-agent-form.ts'

export interface PrivacySettings {
  readonly addresses: AddressForm
  readonly userAgents: 'full' | 'product' | 'none'
  readonly paths: 'full' | 'pattern' | 'none'
  /** For hashes. Set if addresses or paths are not stored in full. */
  readonly key: string | null
}

export const FULL_PRIVACY: PrivacySettings = {
  addresses: 'full',
  userAgents: 'full',
  paths: 'full',
  key: null,
}

/**
 * What the proxy lets out of its memory of a client. Whatever it stores, writes or sends about requests passes here
 * first. Decisions, rate limits and proofs use what the client sent.
 */
export class ClientPrivacy {
  readonly #settings: PrivacySettings
  readonly #hasher: AddressHasher | null
  readonly #paths = new Forms()
  readonly #userAgents = new Forms()

  constructor(settings: PrivacySettings) {
    this.#settings = settings
    this.#hasher = settings.key === null ? null : new AddressHasher(settings.key)
  }

  address(address: string): string {
    switch (this.#settings.addresses) {
      case 'full':
        return address
      case 'network':
        return shownNetwork(address) ?? ''
      case 'keyed_hash':
        return address === '' ? '' : this.#hasher!.hashOf(address)
    }
  }

  userAgent(userAgent: string | null): string | null {
    const { userAgents } = this.#settings
    if (userAgent === null || userAgents === 'full') return userAgent
    return userAgents === 'none' ? null : this.#userAgents.of(userAgent, productsIn)
  }

  /** `path`: without the query. Empty if no paths are stored. */
  path(path: string): string {
    const { paths } = this.#settings
    if (paths === 'none') return ''
    return this.#paths.of(path, paths === 'pattern' ? pathPattern : pathWithoutSecrets)
  }

  /** How campaigns know a client; `null`: by its address. */
  get visitorOf(): ((address: string) => number) | null {
    const hasher = this.#hasher
    return this.#settings.addresses === 'full' || hasher === null
      ? null
      : (address) => hasher.visitorOf(address)
  }

  /** Changes a Sighting that no other has yet. */
  apply(sighting: { -readonly [Member in keyof Sighting]: Sighting[Member] }): void {
    const { addresses, userAgents, paths } = this.#settings
    sighting.path = this.path(sighting.path)
    if (paths !== 'full' && sighting.target !== 0) sighting.target = this.#hasher!.numberFor(sighting.target)
    if (userAgents !== 'full') sighting.userAgent = this.userAgent(sighting.userAgent)
    if (addresses === 'full') return
    if (addresses === 'network') sighting.visitor = this.#hasher!.visitorOf(sighting.address)
    sighting.address = this.address(sighting.address)
  }
}

/** Remembers the forms of texts that come again and again. */
class Forms {
  readonly #known = new Map<string, string>()

  of(text: string, make: (text: string) => string): string {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const form = make(text)
    if (text.length > TEXT_MAX) return form
    if (this.#known.size >= KNOWN_MAX) this.#known.clear()
    this.#known.set(text, form)
    return form
  }
}

/** About 1 MB. */
const KNOWN_MAX = 4_096
const TEXT_MAX = 256
