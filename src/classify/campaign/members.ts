import type { Address } from '../../wire/address-ranges.ts'
import { networkHashOf } from '../../wire/network-hash.ts'

/** The running campaigns, in the form that travels to the proxies. */
export interface CampaignList {
  /** Of the hashes of networks. */
  readonly salt: number
  readonly campaigns: readonly {
    readonly id: string
    /** Hash of its browser. */
    readonly program: number
    /** Hashes of the networks of its members. */
    readonly members: readonly number[]
  }[]
}

/** Answers to which campaign a client belongs. */
export class CampaignMembers {
  readonly #salt: number
  /** By program, then by network. */
  readonly #ids = new Map<number, Map<number, string>>()

  constructor({ salt, campaigns }: CampaignList) {
    this.#salt = salt
    for (const { id, program, members } of campaigns) {
      const ids = this.#ids.get(program) ?? new Map<number, string>()
      for (const network of members) ids.set(network, id)
      this.#ids.set(program, ids)
    }
  }

  /** `null`: to none. */
  idOf(program: number, address: Address): string | null {
    const ids = this.#ids.get(program)
    return ids?.get(networkHashOf(address, this.#salt)) ?? null
  }
}

/** `null` if there are no campaigns, or the value is not such a list. */
export function campaignMembers(value: unknown): CampaignMembers | null {
  return isCampaignList(value) && value.campaigns.length > 0 ? new CampaignMembers(value) : null
}

function isCampaignList(value: unknown): value is CampaignList {
  if (typeof value !== 'object' || value === null) return false
  const { salt, campaigns } = value as Partial<Record<keyof CampaignList, unknown>>
  return Number.isSafeInteger(salt) && Array.isArray(campaigns) && campaigns.every(isCampaign)
}

function isCampaign(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { id, program, members } = value as Record<string, unknown>
  return typeof id === 'string' && Number.isSafeInteger(program) && Array.isArray(members)
}
