import type { Category } from '../../../classify/known/software.ts'
import type { ActiveCampaign } from '../../intake/campaigns.ts'
import { type SoftwareById, nameOf } from '../../judging/sighting-account.ts'
import type { EventDraft } from '../event-draft.ts'
import { countOf } from './threat-data.ts'
import { SEVERITY_OF } from './threat.ts'
import { exampleOf, type Threat } from './threat-tally.ts'

/** A campaign as a threat: reported when it is found, and counted as long as it goes on. */
export class CampaignThreat implements Threat {
  readonly reason = 'crawl_campaign'
  readonly topic = this.reason
  readonly address = null
  readonly agent = null
  readonly category: Category | null = null
  readonly confidence = null
  readonly app = null
  readonly key: string
  readonly count: number
  readonly sinceMs: number
  readonly untilMs: number
  readonly fingerprint: string | null
  readonly software: readonly string[]
  readonly #campaign: ActiveCampaign['record']

  constructor({ record, isNew, requests }: ActiveCampaign) {
    this.#campaign = record
    this.key = `${this.reason} ${record.id}`
    this.count = isNew ? record.signs.addresses * Math.max(1, record.signs.pagesMin) : requests
    this.sinceMs = record.foundAtMs
    this.untilMs = record.lastSeenMs
    this.fingerprint = record.ja4
    this.software = record.software === null ? [] : [record.software]
  }

  get example() {
    return exampleOf(this)
  }

  describe(names: SoftwareById): EventDraft {
    const { reason } = this
    const { id, host, software, ja4, signs } = this.#campaign
    const severity = SEVERITY_OF[reason]
    const browser = software === null ? 'one browser' : nameOf(software, names)
    const known = software === null ? undefined : names.get(software)
    const detail = `${signs.addresses} addresses with ${browser} request ${signs.coverage.distinct} different pages without their parts and links; ${signs.people} others like them behave like people`
    const data = {
      reason,
      severity,
      detail,
      campaign_id: id,
      detection: {
        is_agent: false,
        confidence: 0,
        agent_name: null,
        agent_category: null,
        fingerprints: { ja4: ja4 ?? '', ja4s: '', ja4h: '' },
        name_confidence: 0,
        agent_id: null,
        verified: null,
        proof: null,
        conflicts: [],
        verdict: 'unknown',
        software: known === undefined ? null : { id: software!, name: known.name, kind: known.kind },
        evidence: [],
        request_id: '',
      },
      action: null,
      request: { method: null, host, path: null, address: null },
      ...countOf(this),
    }
    const subject = `campaign ${id}`
    const about = { agent: null, category: null, confidence: null, app: null }
    return { type: 'threat_detected', subject, severity, ...about, data }
  }
}
