import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RECORDED_TIMES } from './test-times.ts'

/** Where the files are that tap runs, one for each group. */
export const GROUPS_FOLDER = '.tap/groups'
/** Enough to share what they load, few enough that the groups spread over the processors. */
const FILES_MAX = 12
/** Test files that share a process, by name of the group: at most twelve of one folder. */
export function groupsOf(files: readonly string[]): Map<string, string[]> {
  const folders = Map.groupBy(files, folderOf)
  const groups = new Map<string, string[]>()
  for (const [folder, members] of folders) {
    const count = Math.ceil(members.length / FILES_MAX)
    for (let group = 0; group < count; group++)
      groups.set(
        `${folder.replaceAll('/', '-')}-${group + 1}`,
        members.filter((_, index) => index % count === group),
      )
  }
  return groups
}

/** For files that share no process. */
export function aloneOf(files: readonly string[]): Map<string, string[]> {
  return new Map(files.map((file) => [file.replace(/\.ts$/, '').replaceAll('/', '-'), [file]]))
}

/** The groups that take longest first: none of them is then left to run at the end while a processor is idle. */
export function longestFirst(
  groups: ReadonlyMap<string, string[]>,
  seconds: Readonly<Record<string, number>>,
): [name: string, members: string[]][] {
  const ofGroup = (members: readonly string[]) =>
    members.reduce((sum, file) => sum + (seconds[file] ?? unknownS(file)), 0)
  return [...groups].sort(([, one], [, other]) => ofGroup(other) - ofGroup(one))
}

/** Writes the files that tap runs for them, and returns their paths. tap runs them in the order of their names. */
export function writeGroups(groups: ReadonlyMap<string, string[]>): string[] {
  rmSync(GROUPS_FOLDER, { recursive: true, force: true })
  mkdirSync(GROUPS_FOLDER, { recursive: true })
  const seconds: Record<string, number> = JSON.parse(readFileSync(RECORDED_TIMES, 'utf8'))
  return longestFirst(groups, seconds).map(([name, members], index) => {
    const path = join(GROUPS_FOLDER, `${String(index + 1).padStart(3, '0')}-${name}.mjs`)
    const list = JSON.stringify(members, null, 2)
    writeFileSync(
      path,
      `import { runFiles } from '../../test/groups/run-files.ts'\n\nawait runFiles(${list})\n`,
    )
    return path
  })
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/'))
}

/** Of a file that is not among the recorded ones: a full file may be a long one. */
function unknownS(file: string): number {
  return file.endsWith('.full.test.ts') ? 20 : 1
}
