import type { Metrics } from '../../shared/metrics.ts'
import type { Campaigns } from './campaigns.ts'

/** They exist before the database is open. */
export class CampaignMetrics {
  campaigns: Campaigns | null = null

  addTo(metrics: Metrics): void {
    const about = 'Running campaigns, crawlers that come from many addresses. Only the leader counts them.'
    metrics.gauge('campaigns', about, 'first', () => [
      { labels: {}, value: this.campaigns?.running.length ?? 0 },
    ])
    metrics.gauge('campaign_members', 'Networks that belong to a running campaign.', 'first', () => [
      { labels: {}, value: this.campaigns?.running.reduce((sum, { members }) => sum + members.size, 0) ?? 0 },
    ])
    metrics.counter('campaigns_found_total', 'Campaigns that this process found.', () => [
      { labels: {}, value: this.campaigns?.found ?? 0 },
    ])
  }
}
