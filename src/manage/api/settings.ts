import * as z from 'zod'
import { LIVE_CHANGES, type ShownSetting } from '../publish/live-settings.ts'
import { actorOf, type AnyOperation, operation } from '../http/operation.ts'
import { checkMatch, etagOf } from '../http/precondition.ts'
import { time, timeOf } from '../http/schemas.ts'

const setting = z
  .strictObject({
    name: z.string().meta({ example: 'log.level', description: 'As in the configuration.' }),
    value: z.unknown().meta({ description: 'In force. Of a secret only that there is one.' }),
    origin: z.string().meta({
      description:
        '`api`, or who said it at the start: a file with line and column, a variable, a flag, `default`.',
    }),
    configured: z.unknown().meta({ description: 'In force where nobody changes it.' }),
    changeable: z.boolean().meta({ description: 'While it runs, with PATCH. All else takes a restart.' }),
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
  summary: 'All settings in force',
  description: 'With who said each. Those that are `changeable` can be changed while it runs.',
  scopes: ['admin'],
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
    'By their names: `{"log.level": "debug"}`. `null` takes a change back: the setting is as it is configured. In force at once, in other processes within a second, and after a restart. `If-Match` is heeded.',
  scopes: ['admin'],
  body: LIVE_CHANGES.meta({ id: 'SettingChanges' }),
  answer: settings,
  problems: ['precondition_failed'],
  run: async (call, { settings: live, nowMs }) => {
    checkMatch(call.ifMatch, etagOf(shown(await live.current())))
    await live.change(call.body, actorOf(call), nowMs())
    return { body: shown(live.shown()) }
  },
})

export const SETTING_OPERATIONS: readonly AnyOperation[] = [getSettings, updateSettings]

function shown(all: readonly ShownSetting[]) {
  return {
    settings: all.map(({ name, value, origin, configured, isLive, about, changedAtMs }) => {
      return {
        ...{ name, value, origin, configured },
        ...{ changeable: isLive, description: about, changed_at: timeOf(changedAtMs) },
      }
    }),
  }
}
