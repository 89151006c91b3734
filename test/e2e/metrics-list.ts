import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { certificateFiles } from '../inject/certificates.ts'
import { mmdbOf } from '../identity/mmdb-writer.ts'
import { freshUrl } from '../store/databases.ts'
import { startApp } from './app.ts'
import { curl } from './curl.ts'
import { feedKeyOf, makeFeedPrivateKey, parseFeedPrivateKey } from '../../src/plane/feed.ts'
import { folderFor, freshBusName, startNats } from './engines.ts'
import { ADMIN_KEY, startFleetProxy, startManager } from './fleet.ts'
import { startGatehouse, startProcess } from './gatehouse.ts'

/** A metric as a scrape shows it. */
export interface ShownMetric {
  readonly name: string
  readonly type: string
  readonly help: string
  /** Their names; none where it has not been seen with any. */
  readonly labels: readonly string[]
  readonly series: number
}

/** What a page of /metrics holds, each metric once. */
export function metricsIn(page: string): readonly ShownMetric[] {
  const found = new Map<string, { type: string; help: string; labels: Set<string>; series: number }>()
  for (const line of page.split('\n')) {
    const [, keyword, name, rest] = /^# (HELP|TYPE) (\w+) (.*)$/.exec(line) ?? []
    if (keyword === 'HELP') found.set(name!, { type: '', help: rest!, labels: new Set(), series: 0 })
    if (keyword === 'TYPE') found.get(name!)!.type = rest!
    const [, sample, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (sample === undefined) continue
    const metric = found.get(sample) ?? found.get(sample.replace(/_(?:bucket|sum|count)$/, ''))!
    metric.series++
    for (const [, label] of labels.matchAll(/(\w+)="/g)) if (label !== 'le') metric.labels.add(label!)
  }
  return [...found].map(([name, { labels, ...metric }]) => ({ name, ...metric, labels: [...labels] }))
}

/** Every process that has metrics, with all settings that bring more, asked once. */
export async function everyPage(t: Test): Promise<Readonly<Record<string, string>>> {
  const app = await startApp(t)
  const [nats, postgres] = [await startNats(t), await freshUrl('postgres', t)]
  const place = { nats: nats.url, postgres, bus: freshBusName() }
  const manager = await startManager(t, place)
  const proxy = await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'), {
    GATEHOUSE_SIGHTINGS_SPOOL_BYTES: '16MiB',
  })
  const folder = folderFor(t, 'all')
  writeFileSync(join(folder, 'asn.mmdb'), mmdbOf([['67.0.0.0/8', { autonomous_system_number: 64_999 }]]))
  writeFileSync(
    join(folder, 'feeds.yaml'),
    `proxy: {upstream: "${app.url}", listen: "127.0.0.1:0", access_log: json, access_log_file: ${folder}/access.log}
manage: {listen: "127.0.0.1:0"}
sightings: {file: ${folder}/sightings.jsonl}
sinks: {file: ${folder}/events.jsonl, parquet: {folder: ${folder}/requests}}
tracing: {endpoint: "http://127.0.0.1:9/v1/traces"}
identity: {asn_file: ${folder}/asn.mmdb, ranges_refresh: 24h}
feeds: [{name: ours, url: "https://127.0.0.1:9/feed", public_keys: "${FEED_KEY}", allow_private: true}]
`,
  )
  const up = await startProcess(
    t,
    ['up', '--config', join(folder, 'feeds.yaml'), '--data', join(folder, 'data')],
    {
      folder,
      variables: { GATEHOUSE_ADMIN_KEY: ADMIN_KEY },
      expects: /feed|ranges/,
    },
  )
  const alone = await startGatehouse(t, { command: 'up', upstream: app.url })
  const inject = await startInject(t)
  // What has labels of many values says only what has happened.
  const signed = [
    '-H',
    'Signature-Input: sig1=("@authority");created=1;tag="web-bot-auth"',
    '-H',
    'Signature: sig1=:AA==:',
  ]
  const urls = [proxy.url, `https://localhost:${String(up.ready['listen']).split(':').at(-1)}`, alone.url]
  for (const url of urls) await curl(folder, ['-k', ...signed, url])
  for (const { manage } of [manager, up]) {
    await fetch(`${manage}/v1/agents`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    await fetch(`${manage}/v1/agents`, { headers: { authorization: 'Bearer none' } })
  }
  const processes = { up, 'up with defaults': alone, manage: manager, proxy, inject }
  const pages = Object.entries(processes).map(async ([name, { manage }]) => {
    return [name, await (await fetch(`${manage}/metrics`)).text()] as const
  })
  return Object.fromEntries(await Promise.all(pages))
}

async function startInject(t: Test) {
  const folder = folderFor(t, 'inject')
  await certificateFiles(folder)
  writeFileSync(
    join(folder, 'g.yaml'),
    `inject:
  listen: 127.0.0.1:0
  tls: {cert_file: tls.crt, key_file: tls.key}
  sidecar: {image: "gate:1", certificate: web-tls}
manage: {listen: "127.0.0.1:0"}
`,
  )
  return startProcess(t, ['inject', '--config', join(folder, 'g.yaml')], { folder })
}

/** config/METRICS.md, of what was found. */
export function metricsDocument(pages: Readonly<Record<string, string>>): string {
  const metrics = new Map<string, { metric: ShownMetric; labels: Set<string>; of: string[] }>()
  for (const [name, page] of Object.entries(pages))
    for (const metric of metricsIn(page)) {
      const known = metrics.get(metric.name) ?? { metric, labels: new Set(), of: [] }
      for (const label of metric.labels) known.labels.add(label)
      const command = name.split(' ')[0]!
      if (!known.of.includes(command)) known.of.push(command)
      metrics.set(metric.name, known)
    }
  const rows = [...metrics.values()]
    .toSorted((one, other) => (one.metric.name < other.metric.name ? -1 : 1))
    .map(({ metric: { name, type, help }, labels, of }) => {
      const named = [...labels].map((label) => `\`${label}\``).join(', ')
      return `| \`${name}\` | ${type} | ${named} | ${of.join(', ')} | ${help} |`
    })
  return `${INTRODUCTION}\n${['| metric | type | labels | commands | meaning |', '|---|---|---|---|---|', ...rows].join('\n')}\n`
}

export const DOCUMENT = 'config/METRICS.md'
const FEED_KEY = feedKeyOf(parseFeedPrivateKey(makeFeedPrivateKey())).text
const INTRODUCTION = `# Metrics

What \`/metrics\` on the management port offers, and for which command. Made from running processes by \`npm run metrics:docs\`;
do not edit it by hand.

Label values come from lists in the program, or are names from its configuration. They never come from clients, and clients
can cause at most 1,500 series of a process. Counters of several workers are added up. With \`Accept:
application/openmetrics-text\`, as Prometheus sends it, the buckets of \`gatehouse_request_duration_seconds\` name an example
decision. \`GET /v1/requests/{id}\`, the app's \`X-Agent-Decision-Id\` and error pages have the same id.
`
