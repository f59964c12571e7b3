// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=p*=r*})'

func.func @other_op(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  // expected-error @+1 {{input 'p' and output 'r' cannot be state: the output must be Concat('p', x)}}
  %0 = dlc.neg %p : (tensor<?xf32, #dlc.info<[past]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @behind(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  // expected-error @+1 {{input 'p' and output 'r' cannot be state: the output must be Concat('p', x), with the input in front}}
  %0 = dlc.concat %x, %p {axis = 0 : i64} : (tensor<1xf32>, tensor<?xf32, #dlc.info<[past]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @three(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  // expected-error @+1 {{the output joins 3 tensors; it must be Concat('p', x)}}
  %0 = dlc.concat %p, %x, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<1xf32>, tensor<1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @static(%p: tensor<8xf32> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  // expected-error @+1 {{the input has the fixed size 8 along axis 0, along which a state grows; leave it open, as a named dim}}
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<8xf32>, tensor<1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @no_name(%p: tensor<?xf32, #dlc.info<[past + 1]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  // expected-error @+1 {{along axis 0, along which a state grows, the input has the size past + 1, which is no dim with a name}}
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past + 1]>>, tensor<1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @two_lengths(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p1"}, %q: tensor<?xf32, #dlc.info<[other]>> {dlc.name = "p2"}, %x: tensor<1xf32> {dlc.name = "x"})
    -> (tensor<*xf32> {dlc.name = "r1"}, tensor<*xf32> {dlc.name = "r2"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<1xf32>) -> tensor<*xf32>
  // expected-error @+1 {{it grows along 'other', and state 'p1' along 'past'; all states of a module have one length}}
  %1 = dlc.concat %q, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[other]>>, tensor<1xf32>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// -----

func.func @two_growths(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p1"}, %q: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p2"}, %x: tensor<1xf32> {dlc.name = "x"},
                       %y: tensor<2xf32> {dlc.name = "y"}) -> (tensor<*xf32> {dlc.name = "r1"}, tensor<*xf32> {dlc.name = "r2"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<1xf32>) -> tensor<*xf32>
  // expected-error @+1 {{a run makes it longer by 2, and state 'p1' by 1}}
  %1 = dlc.concat %q, %y {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<2xf32>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// How much it grows must not depend on data.
func.func @late(%p: tensor<?xi64, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<?xi64, #dlc.info<[n]>> {dlc.name = "x"}, %shape: tensor<1xi64> {dlc.name = "shape"})
    -> (tensor<*xi64> {dlc.name = "r"}) {
  %zero = dlc.constant<dense<0> : tensor<i64>> : tensor<i64>
  %1 = dlc.expand %zero, %shape : (tensor<i64>, tensor<1xi64>) -> tensor<*xi64>
  // expected-error @+1 {{a run makes it longer by "shape[0]", and only the run knows 'shape[0]'}}
  %2 = dlc.concat %p, %1 {axis = 0 : i64} : (tensor<?xi64, #dlc.info<[past]>>, tensor<*xi64>) -> tensor<*xi64>
  return %2 : tensor<*xi64>
}

// -----

// expected-error @+1 {{state 'p=r': the model has no output 'r'}}
func.func @no_output(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}) -> (tensor<*xf32> {dlc.name = "y"}) {
  %0 = dlc.neg %p : (tensor<?xf32, #dlc.info<[past]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// expected-error @+1 {{state 'p*=r*': no input is 'p*'; there are: 'x', 'y'}}
module {
  func.func @no_input(%x: tensor<f32> {dlc.name = "x"}, %y: tensor<f32> {dlc.name = "y"}) -> (tensor<*xf32> {dlc.name = "r"}) {
    %0 = dlc.add %x, %y : (tensor<f32>, tensor<f32>) -> tensor<*xf32>
    return %0 : tensor<*xf32>
  }
}

// -----

func.func @prefill(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
// expected-error @+1 {{state 'p' is f32[past_capacity] in function 'prefill' and f64[past_capacity] in function 'decode'; functions of one module share a state of one name}}
func.func @decode(%p: tensor<?xf64, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<1xf64> {dlc.name = "x"}) -> (tensor<*xf64> {dlc.name = "r"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf64, #dlc.info<[past]>>, tensor<1xf64>) -> tensor<*xf64>
  return %0 : tensor<*xf64>
}

// -----

func.func @first(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
// expected-error @+1 {{the states of function 'second' grow along 'seen', those of a function before it along 'past'; all states of a module have one length}}
func.func @second(%p: tensor<?xf32, #dlc.info<[seen]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[seen]>>, tensor<1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @two_axes(%p: tensor<?x?xf32, #dlc.info<[past, past]>> {dlc.name = "p"}, %x: tensor<1x?xf32, #dlc.info<[1, past]>> {dlc.name = "x"}) -> (tensor<*xf32> {dlc.name = "r"}) {
  // expected-error @+1 {{input 'p' and output 'r' cannot be state: its dim 1 is past, and grows with it; a state grows along one axis}}
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?x?xf32, #dlc.info<[past, past]>>, tensor<1x?xf32, #dlc.info<[1, past]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
