import assert from 'node:assert/strict'
import { test } from 'tap'
import { PieceGatherer } from '../../src/proxy/http/piece-gatherer.ts'

test('what is gathered stays as it was when its buffer is read into again', async () => {
  const sent: string[] = []
  const gatherer = new PieceGatherer((bytes) => void sent.push(Buffer.from(bytes).toString()))
  const buffer = Buffer.from('mine')
  gatherer.add(buffer)
  buffer.write('hers')
  gatherer.add(buffer)
  buffer.fill('x')
  gatherer.flush()
  assert.deepEqual(sent, ['minehers'])
  gatherer.add(Buffer.from('the end of the turn'))
  await new Promise(setImmediate)
  assert.deepEqual(sent, ['minehers', 'the end of the turn'])
})
