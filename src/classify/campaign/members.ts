import type { Address } from '../../wire/address-ranges.ts'
import { networkHashOf, saltedHash } from '../../wire/network-hash.ts'

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

/** Its address, also as it was written. */
interface Client {
  readonly address: Address
  readonly addressText: string
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
  idOf(program: number, client: Client, visitorOf: ((address: string) => number) | null): string | null {
    const ids = this.#ids.get(program)
    if (ids === undefined) return null
    const network =
      visitorOf === null
        ? networkHashOf(client.address, this.#salt)
        : saltedHash(visitorOf(client.addressText), this.#salt)
    return ids.get(network) ?? null
  }
}

/** `null` if there are no campaigns, or the value, which is from the bus, is not such a list in every part. */
export function campaignMembers(value: unknown): CampaignMembers | null {
  return isCampaignList(value) && value.campaigns.length > 0 ? new CampaignMembers(value) : null
}

/** Hashes of networks and browsers have 32 bits. */
function isHash(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff
}

function isCampaignList(value: unknown): value is CampaignList {
  if (typeof value !== 'object' || value === null) return false
  const { salt, campaigns } = value as Partial<Record<keyof CampaignList, unknown>>
  return isHash(salt) && isListOf(campaigns, CAMPAIGNS_MAX, isCampaign)
}

function isCampaign(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { id, program, members } = value as Record<string, unknown>
  return isCampaignId(id) && isHash(program) && isListOf(members, MEMBERS_MAX, isHash)
}

function isListOf(value: unknown, lengthMax: number, isOne: (element: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length <= lengthMax && value.every(isOne)
}

/** Ids are shown to apps in headers and to people in pages. */
export function isCampaignId(value: unknown): value is string {
  return typeof value === 'string' && CAMPAIGN_ID.test(value)
}

const CAMPAIGN_ID = /^cmp_[\w-]{1,60}$/
/** At most 32 campaigns with 4,096 members each: 10 MB. */
export const CAMPAIGNS_MAX = 32
export const MEMBERS_MAX = 4_096
