import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'tap'
import { ownText, shortText } from '../../src/wire/own-text.ts'

const MODULE = new URL('../../src/wire/own-text.ts', import.meta.url).href

test('a text of its own is the same, of whatever bytes', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('latin1')
  for (const text of ['', 'a', bytes, bytes.repeat(300)]) assert.equal(ownText(text), text)
})

test('a short text is the first of it, as far as one asks and as it may be long', async () => {
  const text = `${'é'.repeat(10)}?${'q'.repeat(10)}`
  assert.equal(shortText(text, 100), text)
  assert.equal(shortText(text, text.length), text)
  assert.equal(shortText(text, 5), 'ééééé')
  assert.equal(shortText(text, 100, 10), 'é'.repeat(10))
  assert.equal(shortText(text, 5, 10), 'ééééé')
  assert.equal(shortText(text, 15, 10), 'é'.repeat(10))
  assert.equal(shortText('', 5), '')
})

test('a short text keeps nothing of a long one', async () => {
  const program = `
    import { shortText } from ${JSON.stringify(MODULE)}
    const used = () => { gc(); gc(); return process.memoryUsage().heapUsed }
    const before = used()
    const kept = []
    for (let i = 0; i < 1000; i++) {
      const text = Buffer.alloc(60_000, 'text ' + i + ' ').toString('latin1')
      kept.push(shortText(text, 100), shortText(text, 10_000, 50))
    }
    console.log(used() - before)`
  const args = ['--expose-gc', '--input-type=module', '--eval', program]
  const held = Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  assert.ok(held < 2_000_000, `${held} bytes`)
})
