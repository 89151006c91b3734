import { didYouMean } from '../shared/did-you-mean.ts'
import { Fault } from '../shared/fault.ts'
import { Guide } from '../shared/guide.ts'
import { HELP, USAGE } from '../terminal/arguments.ts'
import type { CommandAction, CommandEntry } from '../terminal/command.ts'
import { markdownPage } from '../terminal/markdown-page.ts'
import { showPaged } from '../terminal/pager.ts'
import { runCli } from './cli.ts'

/**
 * `gatehouse help COMMAND`: the same as `gatehouse COMMAND --help`. `gatehouse help TOPIC`: a page of the manual.
 * `TOPIC.md` is the page even if a command has the same name.
 */
export function help(entries: readonly CommandEntry[], guide = new Guide()): CommandAction {
  const topics = guide.pages.map(({ topic }) => topic)
  const names = [...new Set([...entries.map(({ name }) => name), ...topics])]
  const isCommand = (name: string) => entries.some((entry) => entry.name === name)
  const nameOf = (topic: string) => (isCommand(topic) ? `${topic}.md` : topic)
  return {
    name: 'help',
    summary: 'Show the help of a command, or a page of the manual',
    description: [
      'On a terminal, a page of the manual is formatted and shown with the program that PAGER names, or less. A pipe gets it as Markdown.',
    ],
    operands: [
      {
        name: 'NAME',
        description: 'A command or a topic; omit it to list them',
        optional: true,
        offers: names,
      },
      { name: 'SUBCOMMAND', description: 'A subcommand of the command', optional: true },
    ],
    options: [],
    examples: [
      { command: 'help analyze', description: 'What analyze does, and its options' },
      { command: 'help policy', description: 'How to write a policy' },
      { command: 'help commands | less', description: 'A page as Markdown' },
    ],
    run: async ({ operands }, io) => {
      const [name = '', subcommand] = operands
      const page = guide.page(name.replace(/\.md$/, ''))
      if (name === '' || isCommand(name)) {
        const exitCode = await runCli(entries, [...operands, `--${HELP.name}`], io)
        if (page !== null) io.stdout.write(`\nA page of the manual: gatehouse help ${nameOf(page.topic)}\n`)
        return exitCode
      }
      if (page === null) throw new Fault(USAGE, unknown(name, names, guide))
      if (subcommand !== undefined) throw new Fault(USAGE, `unexpected operand "${subcommand}"`)
      const text = guide.text(page)
      if (io.isTerminal) await showPaged(markdownPage(text, io, nameOf), io)
      else io.stdout.write(text)
      return 0
    },
  }
}

function unknown(name: string, names: readonly string[], guide: Guide): string {
  const about = guide.topicsAbout(name)
  const seen = about.length === 0 ? '' : `; these topics have a section about it: ${about.join(', ')}`
  return `unknown command or topic "${name}"${seen === '' ? didYouMean(name, names) : seen}`
}
