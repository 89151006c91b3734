import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compiled } from '../../../src/runtime/signatures/signature-compiler.ts'
import { version } from '../../../src/shared/package-files.ts'
import { writeAnnouncement } from '../../../src/plane/announcement.ts'
import { writeHeartbeat } from '../../../src/plane/heartbeat.ts'
import { packSightings } from '../../../src/plane/sighting-batch.ts'
import { makeSnapshot } from '../../../src/plane/snapshot.ts'
import { makeDelta, shrink } from '../../../src/plane/snapshot-delta.ts'
import { digestOf, packSnapshot } from '../../../src/plane/snapshot-package.ts'
import { sighting } from '../../contract/bus.ts'

/**
 * Writes down what this version says between managers and proxies: once, when it is released.
 * `node test/plane/recorded/make.ts`
 */
const folder = new URL(`${version()}/`, import.meta.url)
mkdirSync(folder, { recursive: true })
const scratch = mkdtempSync(join(tmpdir(), 'gatehouse-recorded-'))
const own = join(scratch, 'own.yaml')
writeFileSync(
  own,
  `- id: acme-bot
  name: Acme Bot
  kind: agent
  category: crawler
  signatures:
    - {user_agent: acmebot/, source: made up for this test, date: 2026-11-23}
`,
)
const sources = { feeds: [], accepted: '', paths: [own], ranges: [], weightsFile: null }
const { set } = await compiled({ sources, folder: scratch, newest: null, copies: [] })
const policy = { rules: [{ name: 'crawlers', when: { category: 'crawler', path: '/a' }, action: 'block' }] }
const before = await packSnapshot(makeSnapshot(1, { rules: [] }, 1_800_000_000_000, set))
const after = await packSnapshot(makeSnapshot(2, policy, 1_800_000_001_000, set))
const write = (name: string, bytes: Uint8Array) => writeFileSync(new URL(name, folder), bytes)
write('package-before', await shrink(before))
write(
  'announcement',
  writeAnnouncement({
    ...{ number: 2, hash: 'ab'.repeat(32), madeAtMs: 1_800_000_001_000, digest: digestOf(after) },
    bytes: after.length,
    delta: { from: digestOf(before), bytes: await makeDelta(before, after) },
  }),
)
write(
  'heartbeat',
  writeHeartbeat({
    ...{
      id: 'a1b2',
      host: 'one',
      version: version(),
      configHash: 'ab'.repeat(32),
      startedAtMs: 1,
      everyMs: 10_000,
    },
    ...{ snapshot: { number: 2, hash: 'x', madeAtMs: 2 }, source: 'bus', refused: { number: 3, why: 'no' } },
    workers: [{ number: 0, pid: 7, state: 'serving', sinceMs: 5, snapshot: 2, dropped: 1, unready: ['no'] }],
    ...{ sightings: { waiting: 1, dropped: 2 }, isLast: false },
  }),
)
write('sightings', (await packSightings([sighting(1), sighting(2)], 1_000_000))[0]!.bytes)
rmSync(scratch, { recursive: true })
