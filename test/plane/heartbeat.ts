import type { Heartbeat } from '../../src/plane/heartbeat.ts'

/** Of a proxy, with every field. */
export const HEARTBEAT: Heartbeat = {
  ...{
    id: 'a1-b2',
    host: 'one',
    version: '0.1.0',
    configHash: 'ab'.repeat(32),
    startedAtMs: 1,
    everyMs: 1_000,
  },
  ...{ snapshot: { number: 3, hash: 'x', madeAtMs: 2 }, source: 'disk', refused: { number: 4, why: 'no' } },
  workers: [
    { number: 0, pid: null, state: 'gone', sinceMs: null, snapshot: null, dropped: 2, unready: ['no'] },
  ],
  ...{ sightings: { waiting: 1, dropped: 2 }, isLast: false },
}
