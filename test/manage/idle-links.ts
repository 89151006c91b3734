import { join } from 'node:path'
import type { App } from '../../src/apps/app.ts'
import type { ManagementLinks } from '../../src/manage/management-settings.ts'
import { AppCopy } from '../../src/manage/publish/app-copy.ts'
import { AppPolicies, AppPolicyCopy } from '../../src/manage/publish/app-policies.ts'
import type { AppPolicyText } from '../../src/plane/snapshot-policies.ts'
import { AppKeeper } from '../../src/manage/publish/app-keeper.ts'
import { createLogTo, type Log } from '../../src/shared/log.ts'

/** To a process in which there is nothing else. */
export function idleLinks(folder: string): Omit<ManagementLinks, 'policy'> {
  const apps = appKeeper(folder)
  return {
    restored: () => undefined,
    publisher: { nudge: () => undefined },
    apps,
    appPolicies: appPolicies(folder, { apps }),
    opened: () => undefined,
    stored: () => undefined,
    workers: () => [],
  }
}

export function appKeeper(
  folder: string,
  { configured = [], use = () => undefined, log = SILENT }: KeeperParts = {},
): AppKeeper {
  return new AppKeeper({ configured, copy: new AppCopy(join(folder, 'apps.json')), log, use })
}

export function appPolicies(
  folder: string,
  { apps, upstreams = null, use = () => undefined, log = SILENT }: PoliciesParts,
): AppPolicies {
  return new AppPolicies({
    ...{ apps, upstreams, use, log },
    copy: new AppPolicyCopy(join(folder, 'app-policies.json')),
  })
}

interface PoliciesParts extends Pick<ConstructorParameters<typeof AppPolicies>[0], 'apps'> {
  readonly upstreams?: readonly string[] | null
  readonly use?: (policies: readonly AppPolicyText[]) => void
  readonly log?: Log
}

const SILENT = createLogTo('silent', { write: () => undefined })

interface KeeperParts {
  readonly configured?: readonly App[]
  readonly use?: (apps: readonly App[]) => void
  readonly log?: Log
}
