import {
  type AddressHasher,
  isHash,
  visitorIn,
  type WantedAddresses,
  wantedAddresses,
} from '../../plane/privacy/address-form.ts'
import type { Store } from '../../store/store.ts'
import { Address, parseAddressRange } from '../../wire/address-ranges.ts'
import { ipv4Text, ipv6Text, shownNetwork } from '../../wire/ip-address.ts'
import { networkHashOf, saltedHash } from '../../wire/network-hash.ts'
import { parseCampaign } from '../intake/campaign-record.ts'
import { forgetSigns } from '../intake/campaign-signs.ts'
import { campaignSalt } from '../intake/campaigns.ts'
import { blankedData, blankedDraft } from './blanked.ts'
import { ErasureReport } from './erasure-report.ts'

/** One client, in every form in which its address may be stored. */
export interface ErasedClient {
  readonly wanted: WantedAddresses
  /** One of these is in every JSON text that has the address. */
  readonly texts: readonly string[]
  /** Hashes of its network, by which campaigns know it. */
  networks(salt: number): readonly number[]
}

/** `text`: an address, the /64 of an IPv6 address, or a stored `hash:…`. `null`: the text has another form. */
export function erasedClient(text: string, hashers: readonly AddressHasher[]): ErasedClient | null {
  const wanted = wantedAddresses(text, hashers)
  if (wanted === null) return null
  if (isHash(text)) {
    const networks = (salt: number) => [saltedHash(visitorIn(text), salt)]
    return { wanted, texts: [JSON.stringify(text)], networks }
  }
  const { isIpv4, length, first } = parseAddressRange(text)!
  if (length < (isIpv4 ? 32 : 64)) return null
  const address = isIpv4 ? ipv4Text(first[3]!) : ipv6Text(first)
  const hashes = hashers.map((hasher) => hasher.hashOf(address))
  const written = [address, shownNetwork(address)!].map((each) =>
    // All addresses of an IPv6 network begin alike, whatever is left out behind.
    isIpv4 ? `"${each}"` : `"${each.slice(0, each.indexOf(':') + 1)}`,
  )
  const read = new Address()
  read.read(address)
  return {
    wanted,
    texts: [...new Set([...written, ...hashes.map((hash) => `"${hash.split('.')[0]}`)])],
    networks: (salt) => [
      networkHashOf(read, salt),
      ...hashes.map((hash) => saltedHash(visitorIn(hash), salt)),
    ],
  }
}

/**
 * Erases a client in every store. Each slice of the work is a transaction of its own, so that others can write in between,
 * and a repetition after a failure does the rest. `progress` is called after each slice.
 */
export async function eraseClient(
  store: Store,
  { wanted, texts, networks }: ErasedClient,
  { isDry, nowMs, progress = () => undefined }: EraseOptions,
): Promise<ErasureReport> {
  const report = new ErasureReport(isDry)
  const isWanted = (address: string) => wanted.has(address)
  for (const table of ['sightings', 'fingerprints_seen', 'feedback_fingerprints'] as const)
    report.add(table, 0)
  const profiles = await store.sightings.profiles()
  for await (const erased of store.sightings.erase(wanted, isDry)) {
    for (const [table, rows] of erased) report.add(table, rows)
    progress()
  }
  if (!isDry) {
    for await (const _ of store.sightings.forgetUnusedProfiles(0)) progress()
    report.add('sighting_profiles', Math.max(0, profiles - (await store.sightings.profiles())))
  }
  await eraseMember(store, networks, nowMs, report)
  const { recordErasure } = store
  for await (const rows of recordErasure.threats(isWanted, isDry)) report.add('threat_windows', rows)
  const storms = await store.transaction(async (queries) => {
    await store.sightings.lock(queries)
    const examples = (text: string) => blankedData(text, isWanted)
    return recordErasure.storms(examples, (text) => blankedDraft(text, isWanted), isDry, queries)
  })
  report.add('event_storms', storms)
  for (const table of ['events', 'deliveries'] as const) report.add(table, 0)
  for await (const erased of recordErasure.events(texts, (text) => blankedData(text, isWanted), isDry)) {
    report.add('events', erased.events)
    report.add('deliveries', erased.deliveries)
    progress()
  }
  report.add('cases', await recordErasure.cases(isWanted, isDry))
  for await (const rows of recordErasure.auditAddresses(isWanted, isDry)) report.add('audit', rows)
  return report
}

export interface EraseOptions {
  /** Only counts, and changes nothing. */
  readonly isDry: boolean
  readonly nowMs: number
  progress?(): void
}

/** Removes a client from campaigns: from those that are stored, and from the memory of the leader. */
async function eraseMember(
  store: Store,
  networks: ErasedClient['networks'],
  nowMs: number,
  report: ErasureReport,
): Promise<void> {
  const { isDry } = report
  if (!isDry) await store.campaigns.leave(forgetSigns(networks(await campaignSalt(store, nowMs))), nowMs)
  const without = (document: string) => {
    const record = parseCampaign(document)
    if (record === null) return null
    const own = new Set(networks(record.salt))
    const members = record.members.filter(([network]) => !own.has(network))
    return members.length === record.members.length ? null : JSON.stringify({ ...record, members })
  }
  for await (const rows of store.recordErasure.campaigns(without, isDry)) report.add('campaigns', rows)
}
