import assert from 'node:assert/strict'
import { test } from 'tap'
import { KINDS } from '../store/databases.ts'
import { webhookDrill } from './webhook-drill.ts'

for (const kind of KINDS)
  test(`${kind}: every event comes to whoever takes it, though what sends it is killed again and again`, async (t) => {
    const processes = kind === 'sqlite' ? 1 : 2
    const options = { kind, processes, events: 160 / processes, killMs: 300, killsMax: 2 }
    const { kills } = await webhookDrill(t, options)
    assert.ok(kills > 0)
  })
