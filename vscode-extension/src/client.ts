import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type MessageActionItem,
  ShowMessageRequest,
  type ShowMessageRequestParams,
} from 'vscode-languageclient/node';
import type { Log } from './log';
import { errorText } from './log';
import { offerLanguageModels } from './model/languageModels';
import { answersOf, questionIn } from './model/questions';
import { type ClassRef, ServerCommand, type ServerOptions } from './protocol';
import type { ServerProcess } from './serverProcess';
import { SECTION } from './settings';
import { isClassRef } from './target';

const RUNS_USER_CODE: readonly string[] = [
  ServerCommand.generate,
  ServerCommand.improve,
  ServerCommand.check,
  ServerCommand.approve,
  ServerCommand.resume,
  ServerCommand.revalidate,
  ServerCommand.allowLowered,
];

/**
 * vscode-languageclient with its messages sent to the log at their level. It would also show some as notifications;
 * what the user must know is said once, by `Server`.
 */
class Client extends LanguageClient {
  constructor(
    process: ServerProcess,
    options: LanguageClientOptions,
    private readonly log: Log,
  ) {
    const { stdin: writer, stdout: reader } = process.child;
    super(SECTION, 'CuteSmith', () => Promise.resolve({ reader, writer }), options);
  }

  override debug(message: string, data?: unknown): void {
    this.log.debug(withData(message, data));
  }

  override info(message: string, data?: unknown): void {
    this.log.info(withData(message, data));
  }

  override warn(message: string, data?: unknown): void {
    this.log.warn(withData(message, data));
  }

  override error(message: string, data?: unknown): void {
    this.log.error(withData(message, data));
  }
}

/** What the client asks of the rest of the extension. */
export interface Hooks {
  /** The connection ended, and nobody stopped it. */
  readonly onClosed: () => void;
  /** Shows a class's kernel side by side with what there is; false where there is none to accept. */
  readonly review: (target: ClassRef) => Promise<boolean>;
}

/** Makes the client of a running server. */
export function createClient(process: ServerProcess, options: ServerOptions, log: Log, hooks: Hooks): LanguageClient {
  const client = new Client(
    process,
    {
      documentSelector: [{ scheme: 'file', language: 'python' }],
      initializationOptions: options,
      outputChannel: log.channel,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => {
          hooks.onClosed();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      middleware: { executeCommand: (command, args, next) => runServerCommand(hooks, command, args, next) },
    },
    log,
  );
  client.onRequest(ShowMessageRequest.type, askInDialog);
  offerLanguageModels(client, log);
  return client;
}

/** A question of the server decides on something (code sent to a model, a kernel that was never run): it is not missed. */
async function askInDialog({ message, actions = [] }: ShowMessageRequestParams): Promise<MessageActionItem | null> {
  const question = questionIn(message);
  const titles = answersOf(actions.map(({ title }) => title));
  const options = { modal: true, detail: question.detail };
  const title = await vscode.window.showWarningMessage(question.message, options, ...titles);
  return title === undefined ? null : { title };
}

type RunCommand = (command: string, args: unknown[]) => vscode.ProviderResult<unknown>;

/** Shows a command's failure as one sentence, and says where to trust the workspace for one that runs its code. */
async function runServerCommand(hooks: Hooks, command: string, args: unknown[], next: RunCommand): Promise<unknown> {
  if (RUNS_USER_CODE.includes(command) && !vscode.workspace.isTrusted) {
    await offerTrust();
    return undefined;
  }
  try {
    const [target] = args;
    if (command === ServerCommand.review && isClassRef(target) && (await hooks.review(target))) {
      return undefined;
    }
    return await next(command, args);
  } catch (error) {
    void vscode.window.showErrorMessage(errorText(error));
    return undefined;
  }
}

async function offerTrust(): Promise<void> {
  const message = 'Nothing was run: making or validating a kernel runs the module, and this workspace is not trusted.';
  const manage = 'Manage Workspace Trust';
  if ((await vscode.window.showWarningMessage(message, manage)) === manage) {
    await vscode.commands.executeCommand('workbench.trust.manage');
  }
}

function withData(message: string, data: unknown): string {
  return data === undefined || data === null ? message : `${message} ${errorText(data)}`;
}
