import assert from 'node:assert/strict'
import { test } from 'tap'
import { OPERATIONS } from '../../src/manage/api/operations.ts'
import { fuzzApi } from './api-fuzzer.ts'

test('whatever is asked of the API, it keeps what its document promises', async (t) => {
  const { answers, failure } = await fuzzApi(t, {
    requests: 100 * OPERATIONS.length,
    seed: Date.now() % 2 ** 31,
    milliseconds: 10_000,
  })
  assert.equal(failure, null)
  assert.ok([...answers.keys()].some((name) => / 20\d$/.test(name)))
})
