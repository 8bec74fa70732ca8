import * as vscode from 'vscode';
import { ErrorCodes, type LanguageClient, ResponseError, type StaticFeature } from 'vscode-languageclient/node';
import { errorText, type Log } from '../log';
import {
  CHAT_REQUEST,
  type ChatAnswer,
  type ChatRefusal,
  type ChatRequest,
  type EditorModel,
  LANGUAGE_MODEL_REQUEST,
} from '../protocol';
import { SECTION } from '../settings';
import { chosen, collect, mayHaveBegun, nameOf, nothingToAsk, type Piece, refusal, textOf, tooLong } from './chat';

/** Answers the server's questions with a language model of the editor, where this editor has that API with tools. */
export function offerLanguageModels(client: LanguageClient, log: Log): void {
  if (!hasTools()) {
    return;
  }
  client.registerFeature(capability());
  client.onRequest(LANGUAGE_MODEL_REQUEST, () => describe());
  client.onRequest(CHAT_REQUEST, (request: ChatRequest, token: vscode.CancellationToken) => ask(request, token, log));
}

/** Older editors have chat models without tools, in which our answers come. */
function hasTools(): boolean {
  const api: Partial<typeof vscode> = vscode;
  return api.lm !== undefined && api.LanguageModelToolCallPart !== undefined;
}

function capability(): StaticFeature {
  return {
    fillClientCapabilities: (capabilities) => {
      capabilities.experimental = { ...(capabilities.experimental as object | undefined), languageModel: true };
    },
    initialize: () => undefined,
    getState: () => ({ kind: 'static' }),
    clear: () => undefined,
  };
}

async function describe(): Promise<EditorModel> {
  const model = await choose();
  return { name: nameOf(model), provider: model.vendor };
}

async function choose(name?: string): Promise<vscode.LanguageModelChat> {
  const wanted = name ?? vscode.workspace.getConfiguration(SECTION).get('editorModel', '').trim();
  const models = await vscode.lm.selectChatModels();
  const found = chosen(models, wanted);
  if (!found) {
    throw refused(nothingToAsk(wanted, models), false);
  }
  return found;
}

async function ask(request: ChatRequest, token: vscode.CancellationToken, log: Log): Promise<ChatAnswer> {
  const model = await choose(request.model);
  const input = await model.countTokens(textOf(request), token);
  const problem = tooLong(request.model, input, model.maxInputTokens);
  if (problem !== undefined) {
    throw refused(problem, false);
  }
  log.info(`Asking ${request.model}: ${input} tokens.`);
  const stop = new vscode.CancellationTokenSource();
  const ended = token.onCancellationRequested(() => {
    stop.cancel();
  });
  try {
    const response = await model.sendRequest(messagesOf(request), optionsOf(request), stop.token);
    const arrived = await collect(pieces(response.stream), request.maxTokens, errorText);
    const written = arrived.text + arrived.calls.map((call) => JSON.stringify(call.input)).join('');
    return { ...arrived, usage: { input, output: await model.countTokens(written) } };
  } catch (error) {
    const code = error instanceof vscode.LanguageModelError ? error.code : undefined;
    throw refused(refusal(request.model, code, errorText(error)), mayHaveBegun(code));
  } finally {
    ended.dispose();
    stop.cancel(); // what is still on its way of an answer that is not read to its end
    stop.dispose();
  }
}

function messagesOf({ system, user }: ChatRequest): vscode.LanguageModelChatMessage[] {
  return [system, user].map((text) => vscode.LanguageModelChatMessage.User(text));
}

function optionsOf({ tools, maxTokens }: ChatRequest): vscode.LanguageModelChatRequestOptions {
  return {
    justification: 'CuteSmith asks it for GPU kernels of your module, as you agreed to for this workspace.',
    modelOptions: { max_tokens: maxTokens },
    tools: tools.map(({ name, description, input_schema: inputSchema }) => ({ name, description, inputSchema })),
  };
}

async function* pieces(stream: AsyncIterable<unknown>): AsyncGenerator<Piece> {
  for await (const part of stream) {
    if (part instanceof vscode.LanguageModelTextPart) {
      yield { text: part.value };
    } else if (part instanceof vscode.LanguageModelToolCallPart) {
      yield { call: { name: part.name, input: part.input } };
    }
  }
}

function refused(message: string, mayCost: boolean): ResponseError<ChatRefusal> {
  return new ResponseError(ErrorCodes.InternalError, message, { mayCost });
}
