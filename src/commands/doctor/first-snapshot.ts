import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { StartupConfig } from '../../config/config.ts'
import { Fault } from '../../shared/fault.ts'
import { FLEET_FOLDER } from '../../plane/fleet-proxy.ts'
import { NEWEST_FILE } from '../../plane/snapshot-follower.ts'
import { readSnapshotFile } from '../../plane/snapshot-file.ts'
import { bad, type CheckResult, good, warning } from './finding.ts'

/** The Snapshot that a fleet's proxy starts with while NATS is unreachable. */
export async function lookAtFirstSnapshot({
  bus,
  data,
}: Pick<StartupConfig, 'bus' | 'data'>): Promise<readonly CheckResult[]> {
  const kept = await stat(join(data.dir, FLEET_FOLDER, NEWEST_FILE)).catch(() => null)
  const ofFile = bus.bootstrapFile === null ? null : await bootstrapFinding(bus.bootstrapFile)
  const found = ofFile === null ? [] : [ofFile]
  if (kept !== null) return [...found, good(ABOUT, `is on disk since ${kept.mtime.toISOString()}`)]
  if (ofFile?.state === 'good') return [ofFile, good(ABOUT, 'comes from bus.bootstrap_file')]
  const none = 'is missing in data.dir'
  return [
    ...found,
    bus.firstSnapshot === 'wait'
      ? warning(
          ABOUT,
          `${none}: the proxy opens its ports for clients when NATS brings one`,
          'give it a bus.bootstrap_file, written by "gatehouse snapshot export", to start without NATS',
        )
      : warning(
          ABOUT,
          `${none}: until NATS brings one, the policy of the fleet is not enforced`,
          'set bus.first_snapshot: wait, or give it a bus.bootstrap_file',
        ),
  ]
}

async function bootstrapFinding(path: string): Promise<CheckResult> {
  try {
    const { number, madeAtMs } = (await readSnapshotFile(path)).document
    return good('bus.bootstrap_file', `${path} has Snapshot ${number} of ${new Date(madeAtMs).toISOString()}`)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return bad('bus.bootstrap_file', error.message, 'without it, the proxy needs NATS at its first start')
  }
}

const ABOUT = 'first Snapshot'
