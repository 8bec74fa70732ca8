const vscode = require('vscode');

exports.activate = (context) => {
  const interpreters = [...vscode.workspace.getConfiguration('standIn').get('interpreters')];
  const changed = new vscode.EventEmitter();
  const select = vscode.commands.registerCommand('python.setInterpreter', () => {
    interpreters.push(interpreters.shift());
    changed.fire({ path: interpreters[0], resource: undefined });
  });
  context.subscriptions.push(changed, select);
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ id: interpreters[0], path: interpreters[0] }),
      resolveEnvironment: async ({ path }) => ({ executable: { uri: vscode.Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
