import assert from 'node:assert/strict'
import { test } from 'tap'
import { OUTBOX } from '../../src/proxy/http/outbox.ts'

test('what is put in during a turn leaves at its end, in order', async () => {
  const sent: string[] = []
  const sender = (name: string) => ({ send: (text: string) => void sent.push(`${name} ${text}`) })
  const [one, other] = [sender('one'), sender('other')]
  OUTBOX.put(one, 'a')
  OUTBOX.put(other, 'b')
  OUTBOX.put(one, 'c')
  assert.deepEqual(sent, [])
  await new Promise(setImmediate)
  assert.deepEqual(sent, ['one a', 'other b', 'one c'])
})

test('what is put in while it is emptied leaves with the next turn', async () => {
  const sent: string[] = []
  const last = { send: (text: string) => void sent.push(text) }
  OUTBOX.put({ send: () => OUTBOX.put(last, 'later') }, '')
  OUTBOX.put(last, 'now')
  await new Promise(setImmediate)
  assert.deepEqual(sent, ['now'])
  await new Promise(setImmediate)
  assert.deepEqual(sent, ['now', 'later'])
})

test('what has come begins once the turn is over, before anything leaves, and what it says leaves with the rest', async () => {
  const done: string[] = []
  const sender = { send: (text: string) => void done.push(text) }
  OUTBOX.put(sender, 'an answer')
  OUTBOX.beforehand({
    begin: () => {
      done.push('one begins')
      OUTBOX.put(sender, 'what one says')
    },
  })
  OUTBOX.beforehand({ begin: () => void done.push('another begins') })
  assert.deepEqual(done, [])
  await new Promise(setImmediate)
  assert.deepEqual(done, ['one begins', 'another begins', 'an answer', 'what one says'])
  await new Promise(setImmediate)
  assert.equal(done.length, 4)
})
