import { isDeepStrictEqual } from 'node:util'
import { type App, type AppQuota, QUOTA_WINDOWS } from '../../apps/app.ts'
import { hostPatternKey } from '../../wire/host.ts'

/** A difference between a file and a running Gatehouse. */
export type AppChange =
  | { readonly action: 'create'; readonly after: App }
  | { readonly action: 'update'; readonly before: App; readonly after: App }
  | { readonly action: 'delete'; readonly before: App }

/** Deletes come first and creates last, so that hosts are free when another app takes them. */
export function planOf(
  current: readonly App[],
  wanted: readonly App[],
  { prunes }: { readonly prunes: boolean },
): readonly AppChange[] {
  const before = new Map(current.map((app) => [app.id, app]))
  const ids = new Set(wanted.map(({ id }) => id))
  const deletes = current.filter(({ id }) => prunes && !ids.has(id))
  return [
    ...deletes.map((app) => ({ action: 'delete' as const, before: app })),
    ...wanted.flatMap((after) => {
      const found = before.get(after.id)
      return found === undefined || isDeepStrictEqual(found, after)
        ? []
        : [{ action: 'update' as const, before: found, after }]
    }),
    ...wanted.flatMap((after) => (before.has(after.id) ? [] : [{ action: 'create' as const, after }])),
  ]
}

/** What an app keeps of its hosts before its other changes; `null`: no other app takes one of them. */
export function keptHosts(change: AppChange, wanted: readonly App[]): readonly string[] | null {
  if (change.action !== 'update') return null
  const { before, after } = change
  const elsewhere = new Set(
    wanted.flatMap(({ id, hosts }) => (id === after.id ? [] : hosts.map(hostPatternKey))),
  )
  const kept = before.hosts.filter((host) => !elsewhere.has(hostPatternKey(host)))
  return kept.length === before.hosts.length ? null : kept
}

/** For people. */
export function appLines(changes: readonly AppChange[]): string[] {
  return changes.flatMap(changeLines)
}

function changeLines(change: AppChange): readonly string[] {
  switch (change.action) {
    case 'create':
      return [`+ ${change.after.id}`, ...memberLines({ ...BARE, name: change.after.id }, change.after)]
    case 'update':
      return [`~ ${change.after.id}`, ...memberLines(change.before, change.after)]
    case 'delete':
      return [`- ${change.before.id}`]
  }
}

export function planSummary(changes: readonly AppChange[], policies: number): string {
  const count = (action: AppChange['action']) => changes.filter((each) => each.action === action).length
  const ofApps = `${count('create')} to create, ${count('update')} to change, ${count('delete')} to delete`
  return policies === 0
    ? ofApps
    : `${ofApps}, ${policies} ${policies === 1 ? 'policy' : 'policies'} to change`
}

function memberLines(before: Omit<App, 'id'>, after: App): string[] {
  const texts = TEXTS.flatMap((name) => {
    const [from, to] = [before[name], after[name]]
    return from === to ? [] : [`    ${name}: ${from ?? 'none'} → ${to ?? 'none'}`]
  })
  const lists = LISTS.flatMap((name) => {
    const [from, to] = [before[name], after[name]]
    if (isDeepStrictEqual(from, to)) return []
    const added = to.filter((each) => !from.includes(each)).map((each) => `+${each}`)
    const removed = from.filter((each) => !to.includes(each)).map((each) => `-${each}`)
    const said = [...added, ...removed]
    return [`    ${name}: ${said.length === 0 ? 'in another order' : said.join(' ')}`]
  })
  const quota = isDeepStrictEqual(before.quota, after.quota)
    ? []
    : [`    quota: ${quotaText(before.quota)} → ${quotaText(after.quota)}`]
  return [...texts, ...lists, ...quota]
}

function quotaText(quota: AppQuota | null): string {
  const windows = QUOTA_WINDOWS.filter((window) => quota?.[window] !== undefined)
  return windows.length === 0 ? 'none' : windows.map((window) => `${quota![window]} per ${window}`).join(', ')
}

const TEXTS = ['name', 'team', 'upstream'] as const
const LISTS = ['hosts', 'labels'] as const
const BARE = { team: null, hosts: [], upstream: null, labels: [], quota: null }
