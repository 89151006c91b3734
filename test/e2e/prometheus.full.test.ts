import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { stringify } from 'yaml'
import { startApp } from './app.ts'
import { curl } from './curl.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { endWith, plainEnvironment, run, skipped, temporaryFolder } from './programs.ts'
import { freePort } from './ports.ts'

const skip = skipped('prometheus') || skipped('promtool') || skipped('curl')

test('Prometheus accepts the alerts, and every query of the dashboard', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  await promtool(['check', 'rules', 'helm/alerts.yaml'])
  const { panels } = JSON.parse(readFileSync('helm/dashboards/gatehouse.json', 'utf8')) as Dashboard
  const asked = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  assert.ok(asked.length > 20)
  const rules = asked.map((expr, at) => ({
    record: `asked:${at}`,
    expr: expr.replaceAll('$job', '.*').replaceAll('$__rate_interval', '1m'),
  }))
  const file = join(folder, 'asked.yaml')
  writeFileSync(file, stringify({ groups: [{ name: 'asked', rules }] }))
  await promtool(['check', 'rules', file])
})

test('an alert fires for an upstream without a healthy target, and for a proxy without a Snapshot', {
  skip,
}, async (t) => {
  const file = join(temporaryFolder(t), 'tests.yaml')
  const alerts = 'helm/alerts.yaml'
  const cases = [
    {
      alert: 'GatehouseUpstreamFailing',
      series: 'gatehouse_upstream_targets_healthy{instance="a",upstream="app"}',
      values: '1 1 0x10',
      labels: { severity: 'critical', instance: 'a', upstream: 'app' },
      summary: 'a: no target of upstream app is healthy',
    },
    {
      alert: 'GatehouseNoSnapshot',
      series: 'gatehouse_snapshot_source{instance="a",source="none"}',
      values: '0 0 1x10',
      labels: { severity: 'critical', instance: 'a', source: 'none' },
      summary:
        'a: this proxy has no Snapshot of its fleet yet, so its client ports are closed: start a manager, or check that it can reach NATS',
    },
  ]
  const tests = cases.map(({ alert, series, values, labels, summary }) => ({
    interval: '30s',
    input_series: [{ series, values }],
    alert_rule_test: [
      { eval_time: '30s', alertname: alert, exp_alerts: [] },
      {
        eval_time: '5m',
        alertname: alert,
        exp_alerts: [{ exp_labels: labels, exp_annotations: { summary } }],
      },
    ],
  }))
  writeFileSync(file, stringify({ rule_files: [resolve(alerts)], tests }))
  await promtool(['test', 'rules', file])
})

test('Prometheus scrapes it, and finds a request by an exemplar', { skip }, async (t) => {
  const app = await startApp(t)
  const gate = await startGatehouse(t, {
    ...{ command: 'up', upstream: app.url, argv: ['--workers', '1'] },
    variables: { GATEHOUSE_ADMIN_KEY: ADMIN_KEY },
  })
  const folder = temporaryFolder(t)
  for (let i = 0; i < 3; i++) await curl(folder, ['--cacert', gate.caFile, '-A', 'GPTBot/1.2', gate.url])
  // What it finds fault with is an error, too.
  await promtool(['check', 'metrics'], await (await fetch(`${gate.manage}/metrics`)).text())

  const ask = await startPrometheus(t, gate)
  const counted = 'sum by (verdict, category) (gatehouse_requests_total)'
  const result = await until(async () => {
    const found = (await ask(`query?query=${encodeURIComponent(counted)}`)).result
    return found.length === 0 ? null : found
  })
  assert.deepEqual(
    result.map(({ metric, value }: Json) => [metric, value[1]]),
    [[{ verdict: 'agent', category: 'crawler' }, '3']],
  )
  const [now, query] = [Date.now() / 1_000, 'gatehouse_request_duration_seconds_bucket']
  const [{ exemplars }] = await ask(`query_exemplars?query=${query}&start=${now - 600}&end=${now + 600}`)
  const { decision_id } = exemplars[0].labels
  const request = await until(async () => {
    const answer = await fetch(`${gate.manage}/v1/requests/${decision_id}`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    })
    return answer.ok ? ((await answer.json()) as Json) : null
  })
  assert.deepEqual([request.id, request.agent_id], [decision_id, 'gptbot'])
})

/** It is the one that is asked; resolves when it has been scraped. */
async function startPrometheus(t: Test, gate: RunningGatehouse): Promise<(path: string) => Promise<Json>> {
  const [folder, port] = [temporaryFolder(t), await freePort()]
  const config = join(folder, 'prometheus.yml')
  const job = { job_name: 'gatehouse', static_configs: [{ targets: [new URL(gate.manage).host] }] }
  writeFileSync(config, stringify({ global: { scrape_interval: '1s' }, scrape_configs: [job] }))
  const argv = [
    ...[`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'data')}`],
    ...[`--web.listen-address=127.0.0.1:${port}`, '--enable-feature=exemplar-storage'],
  ]
  const child = spawn('prometheus', argv, { env: plainEnvironment(folder), stdio: 'ignore' })
  endWith(t, child)
  const ask = async (path: string): Promise<Json> => {
    const answer = (await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json()) as Json
    assert.equal(answer.status, 'success', JSON.stringify(answer))
    return answer.data
  }
  const target = await until(async () => {
    const { activeTargets } = (await ask('targets').catch(() => ({ activeTargets: [] }))) as Json
    const [first] = activeTargets
    return first === undefined || first.health === 'unknown' ? null : first
  })
  assert.deepEqual([target.health, target.lastError], ['up', ''])
  return ask
}

async function promtool(argv: readonly string[], input?: string): Promise<void> {
  const ran = await run('promtool', argv, {
    env: plainEnvironment('/'),
    ...(input !== undefined && { input }),
  })
  assert.equal(ran.status, 0, ran.stdout + ran.stderr)
}

/** Tried again until it is there: the test has its own end. */
async function until<Value>(look: () => Promise<Value | null>): Promise<Value> {
  for (;;) {
    const found = await look()
    if (found !== null) return found
    await wait(100)
  }
}

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[]
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
type Json = any

const ADMIN_KEY = 'an administrator of tests and of nothing else'
