import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { OPERATIONS_FILE, operationsText } from './operations.ts'

test('what the dashboard knows of the API is what the API is: npm run openapi', async () => {
  assert.equal(readFileSync(OPERATIONS_FILE, 'utf8'), operationsText())
})
