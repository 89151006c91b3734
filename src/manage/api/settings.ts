import * as z from 'zod'
import { LIVE_CHANGES, type ShownSetting } from '../publish/live-settings.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOperation, operation } from './operation.ts'
import { checkMatch, etagOf } from '../http/precondition.ts'
import { time, timeOf } from '../http/schemas.ts'

const setting = z
  .strictObject({
    name: z.string().meta({ example: 'log.level', description: 'The name in the configuration.' }),
    value: z.unknown().meta({ description: 'The value in force. For a secret, only whether it is set.' }),
    origin: z.string().meta({
      description:
        'Where the value comes from: `api`, or from the start a file with line and column, a variable, a flag, or `default`.',
    }),
    configured: z
      .unknown()
      .meta({ description: 'The configured value, which applies unless the API changed it.' }),
    changeable: z
      .boolean()
      .meta({ description: 'Whether PATCH can change it at run time. Other settings need a restart.' }),
    description: z.string(),
    changed_at: time.nullable(),
  })
  .meta({ id: 'Setting' })
const settings = z.strictObject({ settings: z.array(setting) }).meta({ id: 'Settings' })

const getSettings = operation({
  id: 'getSettings',
  method: 'GET',
  path: '/settings',
  tag: 'Administration',
  summary: 'List all settings in force',
  description: 'Each with its origin. Settings that are `changeable` can be changed at run time.',
  scopes: ['admin'],
  reach: 'organisation',
  answer: settings,
  run: async (_, management) => ({ body: shown(await management.settings.current()) }),
})

const updateSettings = operation({
  id: 'updateSettings',
  method: 'PATCH',
  path: '/settings',
  tag: 'Administration',
  summary: 'Change settings',
  description:
    'By name: `{"log.level": "debug"}`. `null` undoes a change: the configured value applies again. Changes take effect at once, in other processes within a second, and survive a restart. `If-Match` is supported.',
  scopes: ['admin'],
  reach: 'organisation',
  body: LIVE_CHANGES.meta({ id: 'SettingChanges' }),
  answer: settings,
  problems: ['precondition_failed'],
  run: async (call, { settings: live, nowMs }) => {
    checkMatch(call.ifMatch, etagOf(shown(await live.current())))
    await live.change(call.body, actorOf(call), nowMs())
    return { body: shown(live.shown()) }
  },
})

export const SETTING_OPERATIONS: readonly ApiOperation[] = [getSettings, updateSettings]

function shown(all: readonly ShownSetting[]) {
  return {
    settings: all.map(({ name, value, origin, configured, isLive, about, changedAtMs }) => {
      return {
        name,
        value,
        origin,
        configured,
        changeable: isLive,
        description: about,
        changed_at: timeOf(changedAtMs),
      }
    }),
  }
}
