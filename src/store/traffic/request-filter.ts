import { type RawBuilder, sql } from 'kysely'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import { REQUEST_KIND } from '../../classify/campaign/seen-request.ts'
import type { WantedAddresses } from '../../plane/privacy/address-form.ts'
import { idPlace } from '../catalogue/place-ranges.ts'
import { ja4hParts } from './sighting-rows.ts'

/** Which requests a search is for. */
export interface RequestFilter {
  readonly apps: AppScope
  readonly sinceMs?: number | undefined
  readonly untilMs?: number | undefined
  readonly id?: string | undefined
  readonly host?: string | undefined
  readonly pathPrefix?: string | undefined
  /** Ranges of keys: see WantedAddresses. They contain more than is wanted. */
  readonly addresses?: WantedAddresses['keys'] | undefined
  readonly ja4h?: string | undefined
  readonly purpose?: string | undefined
  /** A kind of evidence. */
  readonly conflict?: string | undefined
  /** The method of the proof. `true`: any. `false`: no proof. */
  readonly verified?: string | boolean | undefined
  /** As in the JA4H: `10`, `11`, `20` or `30`. */
  readonly httpVersion?: string | undefined
  readonly campaign?: CampaignFilter | undefined
  readonly mcpMethod?: string | undefined
  readonly mcpTool?: string | undefined
  /** By column of the profile. */
  readonly profile?: Readonly<Partial<Record<ProfileColumn, string | undefined>>>
}
type ProfileColumn = 'verdict' | 'category' | 'agent' | 'done' | 'rule' | 'ja4' | 'proxy'

/** Requests of a campaign. */
interface CampaignFilter {
  readonly id: string
  /** Also the pages that this program asked of this host: some of them are of its members. `null`: not these. */
  readonly pages: { readonly program: number; readonly host: string | null } | null
}

/** On columns of `sightings` and `sighting_profiles`. */
export function conditionsOf(filter: RequestFilter): readonly RawBuilder<boolean>[] {
  const { apps, sinceMs, untilMs, id, host, pathPrefix, addresses, ja4h, campaign } = filter
  const { mcpMethod, mcpTool } = filter
  const found = [...profileConditionsOf(filter)]
  if (apps !== ALL_APPS) found.push(sql`app in (${sql.join(apps.size === 0 ? [''] : [...apps])})`)
  if (sinceMs !== undefined) found.push(sql`seen_at_ms >= ${sinceMs}`)
  if (untilMs !== undefined) found.push(sql`seen_at_ms <= ${untilMs}`)
  if (id !== undefined) found.push(idPlace(id) === null ? sql`1 = 0` : sql`sightings.id = ${id}`)
  if (host !== undefined) found.push(sql`host = ${host}`)
  if (mcpMethod !== undefined) found.push(sql`mcp_method = ${mcpMethod}`)
  if (mcpTool !== undefined) found.push(sql`mcp_tool = ${mcpTool}`)
  if (pathPrefix !== undefined)
    found.push(sql`substr(path, 1, length(cast(${pathPrefix} as text))) = ${pathPrefix}`)
  if (addresses !== undefined) {
    const each = addresses.map(([first, last]) => sql`address_key between ${first} and ${last}`)
    found.push(sql`(${sql.join(each, sql` or `)})`)
  }
  if (ja4h !== undefined) {
    const { common, cookies } = ja4hParts(ja4h)
    const isWhole = sql`(sighting_profiles.ja4h = ${ja4h} and ja4h_cookies is null)`
    found.push(
      cookies === null
        ? sql`${isWhole}`
        : sql`(${isWhole} or (sighting_profiles.ja4h = ${common} and ja4h_cookies = ${cookies}))`,
    )
  }
  if (campaign !== undefined) {
    const { id, pages } = campaign
    const isHost = pages?.host == null ? sql`host is null` : sql`host = ${pages.host}`
    found.push(
      pages === null
        ? sql`campaign = ${id}`
        : sql`(campaign = ${id} or (request_kind = ${REQUEST_KIND.page} and ${isHost}))`,
    )
  }
  return found
}

/** Those on columns of the profile alone. */
export function profileConditionsOf(filter: RequestFilter): readonly RawBuilder<boolean>[] {
  const { profile = {}, purpose, conflict, ja4h, verified, httpVersion, campaign } = filter
  const found: RawBuilder<boolean>[] = Object.entries(profile).flatMap(([column, value]) =>
    value === undefined ? [] : [sql<boolean>`sighting_profiles.${sql.ref(column)} = ${value}`],
  )
  if (purpose !== undefined) found.push(hasItem('purposes', purpose))
  if (conflict !== undefined) found.push(hasItem('evidence', conflict))
  if (ja4h !== undefined) {
    const { common } = ja4hParts(ja4h)
    found.push(sql`sighting_profiles.ja4h in (${ja4h}, ${common})`)
  }
  if (typeof verified === 'string') found.push(sql`verified = ${verified}`)
  else if (verified !== undefined) found.push(verified ? sql`verified is not null` : sql`verified is null`)
  if (httpVersion !== undefined) found.push(sql`substr(sighting_profiles.ja4h, 3, 2) = ${httpVersion}`)
  // A proxy looks for the campaigns of the program.
  if (campaign !== undefined && campaign.pages !== null)
    found.push(sql`sighting_profiles.program = ${campaign.pages.program}`)
  return found
}

/** Of a column with a list of texts as JSON. */
function hasItem(column: 'purposes' | 'evidence', text: string): RawBuilder<boolean> {
  const list = sql.ref(column)
  return sql`replace(${list}, cast(${JSON.stringify(text)} as text), '') <> ${list}`
}
