import assert from 'node:assert/strict'
import { test } from 'tap'
import { TestManagement } from './management.ts'
import { conformance, EXTENSIONS, IMPOSSIBLE, OF_ANY_SERVER, WITH_FIXTURES } from './mcp-conformance.ts'
import { makeFixtures } from './mcp-fixtures.ts'

test('what servers may have, the same endpoint carries', async (t) => {
  const manage = await TestManagement.start(t, { mcpServer: makeFixtures })
  const passed = await conformance(t, manage)
  for (const scenario of WITH_FIXTURES) assert.equal(passed.get(scenario), true, scenario)
  const named = new Set([...OF_ANY_SERVER, ...WITH_FIXTURES, ...Object.keys(IMPOSSIBLE)])
  const others = [...passed.keys()].filter((scenario) => !named.has(scenario) && !EXTENSIONS.test(scenario))
  assert.deepEqual(others, [], 'each scenario is in one of the lists')
})
