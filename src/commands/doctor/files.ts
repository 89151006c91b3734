import { randomUUID } from 'node:crypto'
import { rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { StartupConfig } from '../../config/config.ts'
import { Fault } from '../../shared/fault.ts'
import { loadKeyPairs } from '../../proxy/tls/key-pair.ts'
import { keyPairSource } from '../../runtime/startup.ts'
import { bad, type CheckResult, good, warning } from './finding.ts'

/** Checks names and expiry of certificates. Other certificate problems are found with the configuration. */
export async function lookAtCertificates(
  { proxy }: Pick<StartupConfig, 'proxy'>,
  nowMs = Date.now(),
): Promise<readonly CheckResult[]> {
  const { certificates } = proxy.tls
  const found = await Promise.all(
    certificates.map((certificate) =>
      loadKeyPairs([keyPairSource(certificate)], nowMs).catch((error: unknown) => {
        if (error instanceof Fault) return { pairs: [] }
        throw error
      }),
    ),
  )
  return found.flatMap(({ pairs }) =>
    pairs.map(({ name, dnsNames, notAfterMs }) => {
      const about = `certificate ${name}`
      const days = Math.floor((notAfterMs - nowMs) / DAY_MS)
      const until = new Date(notAfterMs).toISOString().slice(0, 10)
      const what = `for ${dnsNames.join(', ') || 'no name'}, good until ${until}`
      if (days < 0) return bad(about, `${what}: it is over`, RENEW)
      return days < DAYS_MIN ? warning(about, `${what}: ${days} days`, RENEW) : good(about, what)
    }),
  )
}

export async function lookAtDataFolder({
  data,
}: Pick<StartupConfig, 'data'>): Promise<readonly CheckResult[]> {
  const folder = resolve(data.dir)
  const about = `data.dir ${folder}`
  const there = await nearest(folder)
  const probe = join(there, `.gatehouse-doctor-${randomUUID()}`)
  try {
    await writeFile(probe, 'x', { flag: 'wx' })
    await rm(probe)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOTDIR' || code === 'EEXIST' ? 'is not a folder' : `cannot be written (${code})`
    return [
      bad(about, why, `run the gateway and this as the same user, who owns it: chown -R USER ${folder}`),
    ]
  }
  const isNew = there !== folder
  const { mode } = await stat(there)
  const open = !isNew && (mode & 0o007) !== 0
  return [
    good(about, isNew ? 'is made at the first start' : 'can be written'),
    ...(open
      ? [
          warning(
            about,
            'can be read by every user of this machine, and keys are in it',
            `chmod o= ${folder}`,
          ),
        ]
      : []),
    await room(about, there),
  ]
}

/** The folder itself, or its nearest existing parent. */
async function nearest(folder: string): Promise<string> {
  for (let each = folder; ; each = dirname(each)) {
    if (await stat(each).catch(() => null)) return each
    if (each === dirname(each)) return each
  }
}

async function room(about: string, folder: string): Promise<CheckResult> {
  const { bavail, bsize } = await statfs(folder)
  const mebibytes = Math.floor((bavail * bsize) / 1_048_576)
  const what = `there are ${mebibytes.toLocaleString('en')} MiB left`
  if (mebibytes < MEBIBYTES_MIN) return bad(about, what, 'make room: nothing new can be kept soon')
  if (mebibytes < MEBIBYTES_WANTED)
    return warning(
      about,
      what,
      'make room, or keep less: store.sightings_max and the settings named retention',
    )
  return good(about, what)
}

const RENEW = 'renew it: a file that is replaced is in force at once, without a restart'
const DAY_MS = 86_400_000
const DAYS_MIN = 21
const MEBIBYTES_MIN = 64
const MEBIBYTES_WANTED = 1_024
