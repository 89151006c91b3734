import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { catalogueRows } from '../../src/runtime/signatures/catalogue-rows.ts'
import { temporaryFolder } from '../e2e/programs.ts'

const JA4S = ['t13d1516h2_8daaf6152771_e5627efa2ab1', 't13d1516h2_8daaf6152771_e5627efa2ab2']

test('a row decides where any line of its file does', async (t) => {
  const path = join(temporaryFolder(t), 'own.yaml')
  const said = { source: 'lab', date: '2026-11-20' }
  const signatures = [
    { ja4: JA4S[0], ...said, observations: 9 },
    { ja4: JA4S[0], ...said, decisive: true },
    { ja4: JA4S[1], ...said },
  ]
  writeFileSync(
    path,
    JSON.stringify([{ id: 'acme', name: 'Acme', kind: 'agent', category: 'custom', signatures }]),
  )
  const rows = [...(await catalogueRows({ feeds: [], paths: [path] })).signatures]
  const ofAcme = rows.filter(({ software_id }) => software_id === 'acme')
  assert.deepEqual(
    ofAcme.map(({ value, is_decisive, observations }) => [value, is_decisive, observations]),
    [
      [JA4S[0], 1, 9],
      [JA4S[1], 0, 0],
    ],
  )
  assert.ok(rows.every(({ software_id, is_decisive }) => software_id === 'acme' || is_decisive === 0))
})
