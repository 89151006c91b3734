import assert from 'node:assert/strict'
import { test } from 'tap'
import { sectionsOf, wordsOf } from '../../src/dashboard/parts/sections.ts'

test('any JSON object is taken apart into named facts and tables', async () => {
  const sections = sectionsOf({
    ...{ reason: 'spoofed_agent', count: 0, none: null, empty: '', list: [], nothing: {} },
    detection: { is_agent: true, fingerprints: { ja4: 'x', ja4h: '' }, evidence: [{ kind: 'a', weight: 2 }] },
    examples: [{ path: '/', of: { deep: [1, { deeper: 2 }] } }, null, 'text'],
    purpose: ['search', 'training'],
  })
  assert.deepEqual(sections, [
    {
      title: '',
      facts: [
        ['Reason', ['spoofed_agent']],
        ['Count', [0]],
        ['Purpose', ['search', 'training']],
      ],
      tables: [
        {
          title: 'Examples',
          columns: ['Path', 'Of', 'Value'],
          rows: [
            [['/'], [1, 2], []],
            [[], [], []],
            [[], [], ['text']],
          ],
        },
      ],
    },
    {
      title: 'Detection',
      facts: [['Is agent', [true]]],
      tables: [{ title: 'Evidence', columns: ['Kind', 'Weight'], rows: [[['a'], [2]]] }],
    },
    { title: 'Detection: Fingerprints', facts: [['JA4', ['x']]], tables: [] },
  ])
  assert.deepEqual(['name_confidence', 'ja4h', 'request_id'].map(wordsOf), [
    ...['Name confidence', 'JA4H', 'Request ID'],
  ])
})
