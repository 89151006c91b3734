import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { seenIn, seenText } from '../../src/commands/demo/seen.ts'
import { missing } from '../e2e/programs.ts'
import { startDemo } from './demo-process.ts'

test('the demo shows its clients, and leaves nothing behind', async (t) => {
  const demo = await startDemo(t)
  await demo.says(/^node: automation, /m)
  await demo.says(/^pretender: agent, .*but spoofed browser/m)
  await demo.says(/^crawler: agent http:\/\/127\.0\.0\.1:\d+, 100 % sure, proven by web-bot-auth/m)
  if (missing('curl') === false) {
    // As it is printed.
    const [, line] = /^ {2}Try +(.*)$/m.exec(demo.out)!
    assert.match(
      execFileSync('sh', ['-c', line!], { encoding: 'utf8' }),
      /^Hello\. The gate says: automation/,
    )
  }
  const [, dashboard, key] = /^ {2}Signs you in +(http:.*\/dashboard\/)#key=(ghk_\S+)$/m.exec(demo.out)!
  const me = await fetch(new URL('/v1/me', dashboard), { headers: { authorization: `Bearer ${key}` } })
  assert.deepEqual(((await me.json()) as { scopes: string[] }).scopes, ['admin'])
  const stats = await fetch(new URL('/v1/stats?window=1h', dashboard), {
    headers: { authorization: `Bearer ${key}` },
  })
  const { detection } = (await stats.json()) as { detection: { requests: number } }
  assert.ok(detection.requests > 0)
  demo.child.kill('SIGINT')
  assert.deepEqual(await once(demo.child, 'exit'), [0, null])
  assert.deepEqual(demo.left(), [])
  assert.deepEqual(demo.running(), [])
  assert.equal(demo.err, '')
})

test('what the gate says is told in words', async () => {
  assert.equal(seenText(seenIn({})), 'not judged')
  const headers = { 'x-agent-verdict': 'agent', 'x-agent-name': 'GPTBot', 'x-agent-category': 'crawler' }
  const more = { 'x-agent-confidence': '0.97', 'x-agent-name-confidence': '0.05' }
  assert.equal(
    seenText(seenIn({ ...headers, ...more, 'x-agent-conflict': 'foreign-address' })),
    'agent, 97 % sure; name GPTBot (crawler), not proven, 5 % sure, but foreign address',
  )
  assert.equal(
    seenText(seenIn({ ...headers, ...more, 'x-agent-verified': 'ip-range' })),
    'agent GPTBot (crawler), 97 % sure, proven by ip-range',
  )
  const rounded = { 'x-agent-verdict': 'agent', 'x-agent-confidence': '1.00' }
  assert.equal(seenText(seenIn(rounded)), 'agent, over 99 % sure')
  assert.equal(
    seenText(seenIn({ ...rounded, 'x-agent-verified': 'ip-range' })),
    'agent, 100 % sure, proven by ip-range',
  )
})
