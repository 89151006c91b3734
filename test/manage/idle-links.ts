import { join } from 'node:path'
import type { App } from '../../src/apps/app.ts'
import type { ManagementLinks } from '../../src/manage/management-settings.ts'
import { AppCopy } from '../../src/manage/publish/app-copy.ts'
import { AppKeeper } from '../../src/manage/publish/app-keeper.ts'
import { createLogTo, type Log } from '../../src/shared/log.ts'

/** To a process in which there is nothing else. */
export function idleLinks(folder: string): Omit<ManagementLinks, 'policy'> {
  return {
    restored: () => undefined,
    publisher: { nudge: () => undefined },
    apps: appKeeper(folder),
    opened: () => undefined,
    stored: () => undefined,
    workers: () => [],
  }
}

export function appKeeper(
  folder: string,
  {
    configured = [],
    use = () => undefined,
    log = createLogTo('silent', { write: () => undefined }),
  }: KeeperParts = {},
): AppKeeper {
  return new AppKeeper({ configured, copy: new AppCopy(join(folder, 'apps.json')), log, use })
}

interface KeeperParts {
  readonly configured?: readonly App[]
  readonly use?: (apps: readonly App[]) => void
  readonly log?: Log
}
