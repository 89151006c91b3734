import assert from 'node:assert/strict'
import { test } from 'tap'
import { TestManagement } from './management.ts'
import { conformance, OF_ANY_SERVER } from './mcp-conformance.ts'

test('what any server has to do, ours does', async (t) => {
  const manage = await TestManagement.start(t)
  const passed = await conformance(t, manage)
  for (const scenario of OF_ANY_SERVER) assert.equal(passed.get(scenario), true, scenario)
})
