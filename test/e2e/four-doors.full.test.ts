import assert from 'node:assert/strict'
import { test } from 'tap'
import { TOOLS } from '../../src/manage/api/operations.ts'
import { TestManagement } from '../manage/management.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { doorsTo, type Outcome } from './doors.ts'

const CURL = 't13d3112h2_e8f1e7e78f70_375ca2c5e164'
const GPTBOT = { user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2)', ja4: CURL, headers: { accept: '*/*' } }
const SUBMITTED = {
  fingerprint: 't13d0205h1_0123456789ab_ba9876543210',
  type: 'ja4',
  agent_name: 'Someone New',
}

/** Of every tool what is right, what is refused, and what is wrong. */
const CALLS: readonly (readonly [tool: string, given: Readonly<Record<string, unknown>>])[] = [
  ['detect_agent', GPTBOT],
  ['detect_agent', {}],
  ['detect_agent', { ja4: 'x' }],
  ['lookup_fingerprint', { fingerprint: CURL, type: 'ja4' }],
  ['lookup_fingerprint', { fingerprint: CURL, match: 'partial' }],
  ['lookup_fingerprint', { fingerprint: CURL, type: 'ja5' }],
  ['list_agents', { category: 'crawler', limit: 3 }],
  ['list_agents', { category: 'crawlers' }],
  ['get_agent', { agent_id: 'gptbot' }],
  ['get_agent', { agent_id: 'no-such-agent' }],
  ['compare_fingerprints', { fingerprints: [CURL, 't13d3112h1_e8f1e7e78f70_0123456789ab'] }],
  ['compare_fingerprints', { fingerprints: [CURL] }],
  ['explain_detection', GPTBOT],
  ['submit_signature', SUBMITTED],
  ['submit_signature', { ...SUBMITTED, type: 'ja5' }],
  ['create_task', { type: 'detect', items: [GPTBOT, {}, { ja4: 'x' }] }],
  ['create_task', { type: 'detect', items: Array.from({ length: 150 }, () => GPTBOT) }],
  ['create_task', { type: 'detect', items: [] }],
  ['get_task', { task_id: 'tsk_none' }],
  ['get_task', { task_id: 7 }],
  ['get_stats', { window: '1h' }],
  ['get_stats', { window: '1h', bucket: '1d' }],
]

for (const kind of KINDS)
  test(`${kind}: a tool says the same, whichever way it is called`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
    await manage.fillCatalogue()
    const key = await manage.key({ name: 'a', scopes: ['read', 'detect', 'write', 'mcp'], plan: 'unlimited' })
    const doors = await doorsTo(t, manage, key)
    // The second time it is known already, by each of them.
    await doors[0]!.call('submit_signature', SUBMITTED)
    for (const [tool, given] of CALLS) {
      const outcomes = await Promise.all(doors.map((door) => door.call(tool, given)))
      const [first, ...others] = outcomes.map((outcome) => comparable(outcome, tool))
      for (const [index, other] of others.entries())
        assert.deepEqual(
          other,
          first,
          `${tool} ${JSON.stringify(given).slice(0, 80)}: ${doors[index + 1]!.name}`,
        )
    }
    assert.deepEqual(
      TOOLS.list.map(({ name }) => name).filter((name) => !CALLS.some(([tool]) => tool === name)),
      [],
      'every tool is tried',
    )
    // A task that was begun by one door is there behind all others.
    for (const door of doors) {
      const made = await door.call('create_task', { type: 'detect', items: [GPTBOT] })
      const { task_id } = made.result
      const looked = await Promise.all(doors.map((each) => each.call('get_task', { task_id })))
      for (const { isError, result } of looked) {
        assert.equal(isError, false)
        assert.deepEqual(result, looked[0]!.result)
      }
    }
    assert.deepEqual(manage.failures, [])
  })

/** Less what is another each time: ids, times, whether a task is begun yet; and how a refusal begins its sentence. */
function comparable({ isError, result }: Outcome, tool: string): unknown {
  const isOwn = (name: string) => OWN.has(name) || (tool === 'submit_signature' && OF_A_SUBMISSION.has(name))
  const text = JSON.stringify(result, (name, value: unknown) => {
    if (tool === 'create_task' && name === 'status' && value === 'running') return 'queued'
    if (tool === 'create_task' && name === 'started_at') return name
    return isOwn(name) && value !== null ? name : value
  })
  const read = JSON.parse(text)
  return isError && read.errors !== undefined
    ? { isError, code: read.code, errors: read.errors }
    : { isError, read }
}

const OWN = new Set([
  'request_id',
  'task_id',
  'created_at',
  'started_at',
  'finished_at',
  'generated_at',
  'at',
])
const OF_A_SUBMISSION = new Set(['id', 'first_seen'])
