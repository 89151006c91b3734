import assert from 'node:assert/strict'
import { test } from 'tap'
import { RecentDetections } from '../../src/manage/judging/detections.ts'

test('the newest ten thousand detections are remembered, and of the older ones not all', async () => {
  const detections = new RecentDetections(null)
  const judged = (agentId: string) => ({
    ...{ verdict: 'agent', agentId, ja4: 'x', ja4s: null, ja4h: null, ja4x: null },
  })
  for (let i = 0; i < 35_000; i++) detections.keep(`r${i}`, judged(`a${i}`))
  for (let i = 25_000; i < 35_000; i++) assert.equal((await detections.find(`r${i}`))?.agentId, `a${i}`)
  for (let i = 0; i < 15_000; i++) assert.equal(await detections.find(`r${i}`), null)
  detections.keep('r34999', judged('later'))
  assert.equal((await detections.find('r34999'))?.agentId, 'later')
})
