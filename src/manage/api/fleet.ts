import * as z from 'zod'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import { noPart } from '../../store/engine/page.ts'
import { PAST_STATES, type PastRun } from '../publish/fleet-history.ts'
import { type FleetSummary, PROXY_STATES, type SeenProxy } from '../publish/fleet-view.ts'
import type { ApiContext } from './context.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const instance = z
  .strictObject({
    id: z
      .string()
      .meta({ example: 'worker-0', description: 'A worker that replaces another takes over its id.' }),
    pid: z.int().nullable(),
    state: z.enum(['starting', 'serving', 'unready', 'gone']).meta({
      description:
        '`unready`: it serves, but reports a reason not to. `gone`: another worker replaces it soon.',
    }),
    since: time.nullable().meta({ description: 'When it started to serve.' }),
    snapshot: z.int().nullable().meta({ description: 'The number of the Snapshot it uses.' }),
    current: z.boolean().meta({ description: 'Whether it uses the newest Snapshot.' }),
    reasons: z.array(z.string()),
  })
  .meta({ id: 'Instance' })
const numberOfProxies = z.int().min(0)
const fleet = z
  .strictObject({
    version: z.string(),
    leads: z.boolean().meta({
      description:
        'Whether this management process builds Snapshots and maintains the catalogue. If there are several, one of them does.',
    }),
    snapshot: z
      .strictObject({ number: z.int(), hash: z.string(), made_at: time })
      .nullable()
      .meta({ description: 'The newest Snapshot: signatures and policy.' }),
    instances: z.array(instance).meta({ description: 'The workers of this gateway. Empty on a manager.' }),
    proxies: z
      .strictObject({
        total: numberOfProxies,
        serving: numberOfProxies,
        unready: numberOfProxies,
        starting: numberOfProxies,
        stale: numberOfProxies.meta({ description: 'Proxies that have missed three heartbeats.' }),
        current: numberOfProxies.meta({ description: 'Proxies that use the newest Snapshot.' }),
        by_version: z.record(z.string(), numberOfProxies),
        oldest_snapshot_made_at: time.nullable(),
      })
      .nullable()
      .meta({
        description:
          'The proxies that reported to this manager in the last hour. `null`: no bus is configured.',
      }),
  })
  .meta({ id: 'Fleet' })

const getFleet = operation({
  id: 'getFleet',
  method: 'GET',
  path: '/fleet',
  tag: 'Administration',
  summary: 'Show the status of workers and proxies',
  description:
    'The workers of this gateway and the Snapshots they use, as reported within the last second. On a manager, the number of proxies in each state.',
  scopes: ['admin'],
  reach: 'organisation',
  answer: fleet,
  run: (_, { version, snapshot, workers, fleet: seen }) => {
    const newest = snapshot()
    return {
      body: {
        version,
        leads: seen?.isLeading() ?? true,
        snapshot:
          newest === null
            ? null
            : { number: newest.number, hash: newest.hash, made_at: timeOf(newest.madeAtMs) },
        instances: workers().map((worker) => shown(worker, newest?.number ?? null)),
        proxies: seen === null ? null : shownSummary(seen.view.summary()),
      },
    }
  },
})

const fleetProxy = z
  .strictObject({
    id: z
      .string()
      .meta({ example: '9f86d081884c7d65', description: 'Stays the same while its data folder exists.' }),
    host: z.string(),
    version: z.string(),
    config_hash: z
      .string()
      .meta({ description: 'SHA-256 of its settings, in hexadecimal. Equal settings have equal hashes.' }),
    state: z.enum(PROXY_STATES),
    started_at: time,
    heard_at: time,
    snapshot: z
      .strictObject({ number: z.int(), hash: z.string(), made_at: time, age_s: z.int().min(0) })
      .nullable(),
    snapshot_source: z.enum(['builtin', 'disk', 'bus']).meta({
      description:
        'The origin of the Snapshot. `builtin`: shipped with Gatehouse. `disk`: the copy of the proxy or its `bus.bootstrap_file`. `bus`: NATS. Ignore it while `snapshot` is `null`.',
    }),
    refused_snapshot: z
      .strictObject({ number: z.int(), reason: z.string() })
      .nullable()
      .meta({ description: 'A newer Snapshot that its version cannot use.' }),
    current: z.boolean().meta({ description: 'Whether all of its workers use the newest Snapshot.' }),
    workers: z.array(instance),
    sightings: z.strictObject({
      waiting: z.int().min(0).meta({ description: 'Records waiting on its disk.' }),
      dropped: z.int().min(0),
    }),
    history: z
      .array(
        z.strictObject({
          from: time,
          to: time,
          state: z.enum(PAST_STATES).meta({
            description:
              'The worst of the time. `stale`: it missed three heartbeats. `away`: none came for five minutes.',
          }),
          behind: z.boolean().meta({ description: 'It did not use the newest Snapshot.' }),
          refusing: z.boolean().meta({ description: 'It could not use a newer Snapshot.' }),
          losing: z.boolean().meta({ description: 'It lost Sightings.' }),
        }),
      )
      .meta({
        description:
          'The last 24 hours in steps of five minutes, oldest first; equal steps are one. It begins when this manager first heard of the proxy: a manager that is started again knows nothing of the time before.',
      }),
  })
  .meta({ id: 'FleetProxy' })

const listFleetProxies = listing({
  id: 'listFleetProxies',
  path: '/fleet/proxies',
  tag: 'Administration',
  summary: 'List the proxies of the fleet',
  description:
    'The latest report of each proxy, ordered by host. A proxy that has missed three heartbeats is `stale` and removed after an hour. A stopped proxy is not listed.',
  scopes: ['admin'],
  reach: 'organisation',
  name: 'proxies',
  filters: {
    state: z.enum(PROXY_STATES).optional().meta({ description: 'Only proxies in this state.' }),
    version: z.string().min(1).max(100).optional().meta({ description: 'Only proxies of this version.' }),
    current: z
      .enum(['true', 'false'])
      .optional()
      .meta({ description: 'Only proxies that use the newest Snapshot, or only the others.' }),
  },
  part: async ({ state = null, version = null, current }, part, { fleet: seen }) =>
    seen === null
      ? noPart(part)
      : seen.view.part(
          { state, version, isCurrent: current === undefined ? null : current === 'true' },
          part,
        ),
  items: {
    schema: fleetProxy,
    show: (proxies: readonly SeenProxy[], { nowMs, fleet }: ApiContext) =>
      proxies.map((proxy) => ({
        ...shownProxy(proxy, nowMs()),
        history: (fleet?.view.historyOf(proxy.heartbeat.id) ?? []).map(shownRun),
      })),
  },
})

export const FLEET_OPERATIONS: readonly ApiOffered[] = [getFleet, listFleetProxies]

function shownSummary({ total, byState, byVersion, current, oldestMadeAtMs }: FleetSummary) {
  return {
    total,
    ...byState,
    current,
    by_version: byVersion,
    oldest_snapshot_made_at: timeOf(oldestMadeAtMs),
  }
}

function shownProxy({ heartbeat, heardAtMs, state, isCurrent }: SeenProxy, nowMs: number) {
  const { id, host, version, configHash, startedAtMs, snapshot, source, refused, workers, sightings } =
    heartbeat
  return {
    id,
    host,
    version,
    state,
    config_hash: configHash,
    started_at: timeOf(startedAtMs),
    heard_at: timeOf(heardAtMs),
    snapshot:
      snapshot === null
        ? null
        : {
            number: snapshot.number,
            hash: snapshot.hash,
            made_at: timeOf(snapshot.madeAtMs),
            age_s: Math.max(0, Math.round((nowMs - snapshot.madeAtMs) / 1000)),
          },
    snapshot_source: source,
    refused_snapshot: refused === null ? null : { number: refused.number, reason: refused.why },
    current: isCurrent,
    workers: workers.map((worker) => shown(worker, snapshot?.number ?? null)),
    sightings: { ...sightings },
  }
}

function shownRun({ fromMs, toMs, state, isBehind, isRefusing, isLosing }: PastRun) {
  return {
    from: timeOf(fromMs),
    to: timeOf(toMs),
    state,
    ...{ behind: isBehind, refusing: isRefusing, losing: isLosing },
  }
}

function shown({ number, pid, state, sinceMs, snapshot, unready }: WorkerStatus, newest: number | null) {
  return {
    id: `worker-${number}`,
    pid,
    snapshot,
    state: state === 'serving' && unready.length > 0 ? ('unready' as const) : state,
    since: timeOf(sinceMs),
    current: snapshot !== null && snapshot === newest,
    reasons: [...unready],
  }
}
