import { ALL_APPS } from '../../apps/app-scope.ts'
import { Fault } from '../../shared/fault.ts'
import { COMMAND_LINE } from '../../manage/http/audit.ts'
import {
  changeUser,
  deleteUser,
  emailIn,
  forgetOpenid,
  makeUser,
  OPENID_SUBJECT,
  scopesOf,
  setOpenid,
  setPassword,
  startCodes,
  stopCodes,
  type UserChanges,
  type WantedUser,
} from '../../manage/auth/people/make-user.ts'
import { codeUri } from '../../manage/auth/people/one-time-codes.ts'
import { PasswordHasher, passwordProblem } from '../../manage/auth/people/password-hash.ts'
import { ACCESS, SCOPES } from '../../manage/http/access/principal.ts'
import type { Store } from '../../store/store.ts'
import type { UserRecord } from '../../store/people/users.ts'
import { accessIn, APP_OPTION, appsIn, appsText, limitText } from './access-options.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode, Group } from '../../terminal/command.ts'
import { readHidden } from '../../terminal/hidden-line.ts'
import type { Io } from '../../terminal/io.ts'
import { JSON_OPTION } from '../../terminal/json-option.ts'
import { printRecords } from '../record/record-list.ts'
import { configGiven, sealerGiven, STORE_OPTIONS, withStore } from '../../runtime/store-given.ts'
import { visible } from '../../terminal/table.ts'

const USER = { name: 'USER', description: 'Their email address, or their id as "users list" shows it: usr_…' }
const PASSWORD_WORDS =
  'Asks for the password on the terminal without showing it, or reads it from the first line of standard input. It needs ' +
  'at least 12 characters. Only a hash is stored.'

const create: CommandAction = {
  name: 'create',
  summary: 'Create a user, and ask for their password',
  description: [
    PASSWORD_WORDS,
    'A user can authorize clients only for their own permissions. If the gateway has never run, this creates its ' +
      'database: run it as the same user as the gateway.',
  ],
  operands: [{ name: 'EMAIL', description: 'The email address for sign-in' }],
  options: [
    { name: 'access', value: 'ACCESS', description: 'Their permissions', choices: Object.keys(ACCESS) },
    {
      name: 'scopes',
      value: 'SCOPES',
      description: `Instead of --access, separated by commas: ${SCOPES.join(', ')}`,
    },
    APP_OPTION,
    {
      name: 'without-password',
      description: 'Set no password; the user cannot sign in with one until it is set',
    },
    JSON_OPTION,
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'users create anna@example.com --access admin', description: 'Asks for the password' },
    {
      command: 'users create ben@example.com --scopes read,detect < password.txt',
      description: 'Reads it from a file',
    },
  ],
  run: runCreate,
}

const list: CommandAction = {
  name: 'list',
  summary: 'List the users',
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'users list', description: 'Newest first' }],
  run: runList,
}

const change: CommandAction = {
  name: 'change',
  summary: 'Change the permissions of a user, or disable sign-in',
  description: [
    'The change takes effect within a second, in every browser and for all clients that the user authorized. A disabled user is signed out everywhere, and keeps their password and codes.',
  ],
  operands: [USER],
  options: [
    { name: 'access', value: 'ACCESS', description: 'Their permissions', choices: Object.keys(ACCESS) },
    {
      name: 'scopes',
      value: 'SCOPES',
      description: `Instead of --access, separated by commas: ${SCOPES.join(', ')}`,
    },
    { ...APP_OPTION, description: 'Only objects of this app; repeatable. "*": all apps' },
    { name: 'disable', description: 'Disable sign-in' },
    { name: 'enable', description: 'Enable sign-in' },
    ...STORE_OPTIONS,
  ],
  examples: [
    { command: 'users change anna@example.com --scopes read', description: 'Only this scope' },
    { command: 'users change anna@example.com --disable', description: 'Disable until --enable' },
  ],
  run: runChange,
}

const remove: CommandAction = {
  name: 'delete',
  summary: 'Delete a user and sign them out everywhere within a second',
  operands: [USER],
  options: STORE_OPTIONS,
  examples: [{ command: 'users delete anna@example.com', description: 'Permanently' }],
  run: runDelete,
}

const password: CommandAction = {
  name: 'password',
  summary: 'Set the password of a user and sign them out everywhere within a second',
  description: [PASSWORD_WORDS],
  operands: [USER],
  options: STORE_OPTIONS,
  examples: [{ command: 'users password anna@example.com', description: 'Asks for it, twice' }],
  run: runPassword,
}

const codes: CommandAction = {
  name: 'codes',
  summary: 'Require one-time codes of an authenticator app from a user, beside the password',
  description: [
    'Prints the setup key for the app on stdout, then ten recovery codes that work once each. Give them to the user in ' +
      'private. They are shown only once, and replace earlier ones.',
  ],
  operands: [USER],
  options: [{ name: 'off', description: 'Stop requiring codes' }, ...STORE_OPTIONS],
  examples: [
    {
      command: 'users codes anna@example.com',
      description: 'The first line is for the app, the others for a drawer',
    },
    { command: 'users codes --off anna@example.com', description: 'The password alone is enough' },
  ],
  run: runCodes,
}

const openid: CommandAction = {
  name: 'openid',
  summary: 'Link a user to an account at the OpenID provider, or unlink it',
  description: [
    'The link is made at sign-in if the provider reports the email address as verified. After a failed sign-in, ' +
      '"failSignIn" in the audit log shows the subject. Changing the link signs the user out everywhere.',
  ],
  operands: [USER],
  options: [
    { name: 'subject', value: 'SUBJECT', description: 'Their permanent id at the provider (sub)' },
    { name: 'off', description: 'Remove the link, until they sign in from there again' },
    ...STORE_OPTIONS,
  ],
  examples: [
    {
      command: 'users openid --subject 248289761001 anna@example.com',
      description: 'Link them at auth.openid.issuer',
    },
    { command: 'users openid --off anna@example.com', description: 'They changed to another account there' },
  ],
  run: runOpenid,
}

export const users: Group = {
  name: 'users',
  summary: 'Create, list, change and delete users, and set their passwords',
  description: ['Works on the database of a gateway, whether the gateway runs or not.'],
  subcommands: [create, list, change, remove, password, codes, openid],
}

async function runCreate(given: Arguments, io: Io): Promise<ExitCode> {
  const wanted = await wantedUser(given, io)
  const made = await withStore(given, io, true, async (store) => {
    const apps = await appsIn(given, store, configGiven(given, io).apps)
    return makeUser(store, new PasswordHasher(), { ...wanted, apps }, COMMAND_LINE, Date.now())
  })
  if (made === null) throw new Fault('USER_KNOWN', `there is a user ${visible(wanted.email)} already`)
  const shown = shownUser(made)
  if (given.flag('json')) io.stdout.write(`${JSON.stringify(shown)}\n`)
  else io.stdout.write(`${shown.id}\n`)
  const how = shown.has_password ? '' : '; cannot sign in here before a password is set'
  io.stderr.write(
    `${shown.id}: ${visible(shown.email)}: ${shown.scopes.join(', ')}${limitText(shown.apps)}${how}\n`,
  )
  return 0
}

function runList(given: Arguments, io: Io): Promise<ExitCode> {
  return printRecords(given, io, {
    columns: [
      { title: 'ID' },
      { title: 'EMAIL', flexible: true },
      { title: 'SCOPES', flexible: true },
      { title: 'APPS', flexible: true },
      { title: 'PASSWORD' },
      { title: 'CODES' },
      { title: 'STATE' },
      { title: 'CREATED' },
    ],
    page: (store, page) => store.users.list(page, ALL_APPS),
    shown: shownUser,
    row: ({ id, email, scopes, apps, has_password, has_one_time_codes, disabled, created_at }) => {
      const proofs = [has_password ? 'set' : 'none', has_one_time_codes ? 'asked for' : 'none']
      return [
        id,
        email,
        scopes.join(','),
        appsText(apps),
        ...proofs,
        disabled ? 'disabled' : '',
        created_at.slice(0, 16),
      ]
    },
  })
}

async function runChange(given: Arguments, io: Io): Promise<ExitCode> {
  let changes = changesIn(given)
  const { id, email } = await withUser(given, io, async (store, user) => {
    if (given.values('app').length > 0)
      changes = { ...changes, apps: await appsIn(given, store, configGiven(given, io).apps) }
    return changeUser({ store, hasher: new PasswordHasher() }, user, changes, COMMAND_LINE, Date.now())
  })
  const { scopes, apps, isDisabled } = changes
  const said = [
    ...(scopes === undefined ? [] : [scopes.join(', ')]),
    ...(apps === undefined ? [] : [`apps ${appsText(apps)}`]),
    ...(isDisabled === undefined ? [] : [isDisabled ? 'disabled' : 'enabled']),
  ]
  io.stderr.write(`${id}: ${visible(email)}: ${said.join('; ')}\n`)
  return 0
}

async function runDelete(given: Arguments, io: Io): Promise<ExitCode> {
  const { id, email } = await withUser(given, io, async (store, user) => {
    return deleteUser(store, user, COMMAND_LINE, Date.now())
  })
  io.stderr.write(`${id}: ${visible(email)}: deleted\n`)
  return 0
}

async function runPassword(given: Arguments, io: Io): Promise<ExitCode> {
  const { id, email } = await withUser(given, io, async (store, user) => {
    const text = await newPassword(io)
    return setPassword({ store, hasher: new PasswordHasher() }, user, text, COMMAND_LINE, Date.now())
  })
  io.stderr.write(`${id}: ${visible(email)}: the password is set, and they are signed out\n`)
  return 0
}

async function runCodes(given: Arguments, io: Io): Promise<ExitCode> {
  const sealer = sealerGiven(given, io)
  const isOff = given.flag('off')
  const { id, email } = await withUser(given, io, async (store, user) => {
    if (isOff) return stopCodes(store, user, COMMAND_LINE, Date.now())
    const made = await startCodes({ store, sealer }, user, COMMAND_LINE, Date.now())
    if (made === null) return false
    io.stdout.write(`${[codeUri(made.secret, user.email), ...made.recoveryCodes].join('\n')}\n`)
    return true
  })
  io.stderr.write(`${id}: ${visible(email)}: ${isOff ? 'no code is' : 'a code is'} asked for\n`)
  return 0
}

async function runOpenid(given: Arguments, io: Io): Promise<ExitCode> {
  const [subject, isOff] = [given.value('subject'), given.flag('off')]
  if ((subject === null) !== isOff) throw new Fault(USAGE, 'give either --subject or --off')
  if (subject !== null && !OPENID_SUBJECT.test(subject))
    throw new Fault(USAGE, '--subject must have 1 to 255 characters of ASCII')
  const issuer = configGiven(given, io).auth.openid?.issuer
  if (subject !== null && issuer === undefined)
    throw new Fault('OPENID_NOT_SET', 'there is no provider: auth.openid.issuer is not set')
  const { id, email } = await withUser(given, io, async (store, user) => {
    if (subject === null) return forgetOpenid(store, user, COMMAND_LINE, Date.now())
    if (await setOpenid(store, user, { issuer: issuer!, subject }, COMMAND_LINE, Date.now())) return true
    throw new Fault('OPENID_TAKEN', `another user is ${visible(subject)} there`)
  })
  const what = isOff
    ? 'link removed, and signed out'
    : `linked to ${visible(subject!)} at ${visible(issuer!)}`
  io.stderr.write(`${id}: ${visible(email)}: ${what}\n`)
  return 0
}

function changesIn(given: Arguments): UserChanges {
  const [isDisabled, isEnabled] = [given.flag('disable'), given.flag('enable')]
  if (isDisabled && isEnabled) throw new Fault(USAGE, 'give --disable or --enable')
  const hasScopes = given.value('access') !== null || given.value('scopes') !== null
  const changes = {
    ...(hasScopes && { scopes: accessIn(given) }),
    ...((isDisabled || isEnabled) && { isDisabled }),
  }
  if (Object.keys(changes).length === 0 && given.values('app').length === 0)
    throw new Fault(USAGE, 'give --access, --scopes, --app, --disable or --enable')
  return changes
}

/** Throws a Fault if the user does not exist, or if `work` finds that the user was deleted meanwhile. */
async function withUser(
  given: Arguments,
  io: Io,
  work: (store: Store, user: UserRecord) => Promise<boolean>,
): Promise<UserRecord> {
  const name = given.operands[0]!
  return withStore(given, io, false, async (store) => {
    const email = emailIn(name)
    const byId = async () => (USER_ID.test(name) ? store.users.byId(name) : null)
    const user = email === null ? await byId() : await store.users.byEmail(email)
    if (user === null || !(await work(store, user)))
      throw new Fault('USER_UNKNOWN', `there is no user ${visible(name)}`)
    return user
  })
}

async function wantedUser(given: Arguments, io: Io): Promise<Omit<WantedUser, 'apps'>> {
  const email = emailIn(given.operands[0]!)
  if (email === null) throw new Fault(USAGE, 'EMAIL must be an email address')
  const scopes = accessIn(given)
  return { email, scopes, password: given.flag('without-password') ? null : await newPassword(io) }
}

/** Reads a new password; asks twice if it is typed. Throws a Fault. */
async function newPassword(io: Io): Promise<string> {
  const text = await readHidden(io, 'Password: ')
  const problem = passwordProblem(text)
  if (problem !== null) throw new Fault('PASSWORD_INVALID', `the password ${problem}`)
  const isTyped = (io.stdin as { isTTY?: boolean }).isTTY === true
  if (isTyped && (await readHidden(io, 'Again: ')) !== text)
    throw new Fault('PASSWORD_INVALID', 'the two are not the same')
  return text
}

function shownUser(record: UserRecord) {
  const { id, email, hasPassword, hasCodes, isDisabled, createdAtMs } = record
  return {
    id,
    email,
    scopes: scopesOf(record),
    apps: record.apps,
    has_password: hasPassword,
    has_one_time_codes: hasCodes,
    disabled: isDisabled,
    openid: record.openid,
    created_at: new Date(createdAtMs).toISOString(),
  }
}

const USER_ID = /^usr_[\w-]+$/
